import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInProcessBus, TIMELINE_CONSUMER } from '@writ/bus';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { readTrustFile, TRUST_FILE } from '@writ/identity';
import { newId } from '@writ/kernel';
import { loadExample } from '@writ/platform';
import { createTelemetry } from '@writ/telemetry';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { createToolGateway, readToolGatewayConfig, type ToolGateway } from '@writ/tool-gateway';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** Names of the TOOL events. */
const TOOL_EVENTS: ReadonlyMap<HookEventType, string> = new Map<HookEventType, string>([
  [HookEventType.TOOL_START, 'TOOL_START'],
  [HookEventType.TOOL_END, 'TOOL_END'],
]);

const example = loadExample('refund-desk');
const WAITING = 'no event subscriber; events remain in the outbox';
const EACH_ONCE = ['get_refund_context', 'issue_refund', 'send_refund_email'].flatMap((tool) => [
  `TOOL_START ${tool} ok`,
  `TOOL_END ${tool} ok`,
]);

describe('the refund desk on a built-in gateway in its own process', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-busless-'));
  const logged: string[] = [];
  const telemetry = createTelemetry({
    service: 'tool-gateway',
    logLevel: 'info',
    logStream: { write: (line) => void logged.push((JSON.parse(line) as { msg: string }).msg) },
  });
  const deliveryMessages = () =>
    logged.filter((message) => /\bevent (subscriber|delivery)\b/.test(message));
  // This bus delivers no event until a test subscribes.
  const bus = createInProcessBus({
    requiredConsumers: [TIMELINE_CONSUMER],
    onError: () => undefined,
  });
  let gateway: ToolGateway;
  let test: TestPlatform;

  async function startGateway(port = '0'): Promise<void> {
    const env = {
      WRIT_DATA: join(dataDir, 'gateway'),
      WRIT_TOOL_GATEWAY_PORT: port,
      WRIT_TOOLS_FILE: join(example.folder, 'tools.yaml'),
    };
    gateway = await createToolGateway(
      // Longer than the test: a stop that waited for the bus would not finish.
      { ...readToolGatewayConfig(env), receiptDelayMs: 0, receiptPollMs: 20, flushMs: 120_000 },
      {
        telemetry,
        bus,
        addressOf: (service) => readTrustFile(join(dataDir, TRUST_FILE))[service] ?? '',
      },
    );
    await gateway.start();
  }

  beforeAll(async () => {
    await startGateway();
    test = await startTestPlatform({
      dataDir,
      env: { WRIT_TOOL_GATEWAY_ADDRESS: gateway.address },
    });
  });

  afterAll(async () => {
    await test.close();
    await gateway.stop();
    await bus.close();
    await telemetry.shutdown();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** The TOOL events on the timeline of a run, and the services that published them. */
  async function refund(): Promise<{ events: string[]; emitters: Set<string> }> {
    const { run } = await test.client.runs.startRun({
      requestId: newId('req'),
      agent: example.agent,
      goal: example.goal,
      model: 'sim-auto-1000',
    });
    const emitters = new Set<string>();
    const events: string[] = [];
    for await (const { event } of test.client.runs.watchRun({ runId: run?.runId ?? '' })) {
      if (event?.entry.case !== 'hook') continue;
      const { type, toolName, status, emitter } = event.entry.value;
      const name = TOOL_EVENTS.get(type);
      if (name === undefined) continue;
      emitters.add(emitter);
      events.push(`${name} ${toolName} ${status}`);
    }
    return { events, emitters };
  }

  it('has the supervisor publish the events of each call once, from its receipt, when the gateway has no bus (HK-1)', async () => {
    const { events, emitters } = await refund();
    expect(events).toEqual(EACH_ONCE);
    expect([...emitters]).toEqual(['supervisor']);
  });

  it('logs once that its outbox is not drained, and stops without waiting (HK-2)', async () => {
    await expect.poll(deliveryMessages).toEqual([WAITING]);
    await gateway.stop();
    expect(deliveryMessages()).toEqual([WAITING]);
    await startGateway(gateway.address.split(':')[1]);
    await expect.poll(deliveryMessages).toEqual([WAITING, WAITING]);
  });

  it('keeps the event ids of a gateway whose bus connects later (HK-1)', async () => {
    const published: string[] = [];
    await bus.subscribe({
      subject: '>',
      durable: TIMELINE_CONSUMER,
      handler: async ({ eventId }) => void published.push(eventId),
    });
    await expect.poll(() => published.length, { timeout: 10_000 }).toBe(EACH_ONCE.length);
    expect(deliveryMessages()).toEqual([WAITING, WAITING, 'event delivery resumed']);
    const { runs } = (await test.client.runs.listRuns({})) ?? {};
    const known: string[] = [];
    for await (const { event } of test.client.runs.watchRun({ runId: runs[0]?.runId ?? '' })) {
      if (event?.entry.case === 'hook') known.push(event.entry.value.eventId);
    }
    expect(known.filter((id) => published.includes(id)).sort()).toEqual(published.sort());
  });
});
