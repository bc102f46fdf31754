import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { HOOK_SUBJECTS } from '@writ/bus';
import { type HookEvent, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import type { WatchRunResponse } from '@writ/contracts/writ/run/v1/run_service_pb';
import { derivedId } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  CONTEXT,
  finalText,
  LOOK_UP,
  RefundHarness,
  refund,
  type TestAgent,
} from './refund-harness.ts';
import { refundTools } from './refund-tools.ts';

const STARTED = new Date('2026-11-02T10:00:00.000Z');
const ENDED = new Date('2026-11-02T10:00:01.250Z');
const TIMES = { startTime: timestampFromDate(STARTED), endTime: timestampFromDate(ENDED), step: 7 };

/** Names of the TOOL events. */
const TOOL_EVENTS: ReadonlyMap<HookEventType, string> = new Map<HookEventType, string>([
  [HookEventType.TOOL_START, 'TOOL_START'],
  [HookEventType.TOOL_END, 'TOOL_END'],
]);

function hooksOf(events: readonly WatchRunResponse[]): HookEvent[] {
  return events.flatMap(({ event }) => (event?.entry.case === 'hook' ? [event.entry.value] : []));
}

describe('tool events of a gateway without a bus', () => {
  let harness: RefundHarness;
  const seen: string[] = [];
  beforeAll(async () => {
    harness = await RefundHarness.start();
    harness.listTools(refundTools(), 'v1', false);
    await harness.supervisor.bus.subscribe({
      subject: HOOK_SUBJECTS,
      durable: 'test',
      handler: async ({ eventId }) => void seen.push(eventId),
    });
  });
  afterAll(() => harness.close());

  /** The TOOL events on the timeline of an ended run. */
  async function toolEvents(agent: TestAgent): Promise<HookEvent[]> {
    const { runId } = agent.scope;
    const runs = harness.supervisor.runs();
    await runs.cancelRun({ requestId: `c-${runId}`, runId });
    const events = await Array.fromAsync(runs.watchRun({ runId }));
    return hooksOf(events).filter(({ type }) => TOOL_EVENTS.has(type));
  }

  it('are published by the supervisor from the receipt, as the gateway would publish them (HK-1)', async () => {
    const agent = await harness.agent();
    const decision = await agent.propose('op-1', LOOK_UP);
    const receipt = await agent.receipt(decision, CONTEXT, TIMES);
    await agent.propose('op-2', refund(0), { receipts: [receipt] });
    await harness.report(receipt, receipt);
    const events = await toolEvents(agent);
    const { tenant, runId, agentInstance } = agent.scope;
    const common = {
      emitter: 'supervisor',
      tenant,
      runId,
      agent: { name: 'refund-worker', instance: agentInstance },
      callId: 'op-1',
      step: 7,
      toolName: 'get_refund_context',
      status: 'ok',
      argsSha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    };
    expect(events).toMatchObject([
      { ...common, eventId: derivedId('evt', runId, agentInstance, 'op-1', 'TOOL_START') },
      {
        ...common,
        eventId: derivedId('evt', runId, agentInstance, 'op-1', 'TOOL_END'),
        duration: { seconds: 1n, nanos: 250_000_000 },
      },
    ]);
    expect(events.map(({ eventTime }) => eventTime && timestampDate(eventTime))).toEqual([
      STARTED,
      ENDED,
    ]);
    const ids = events.map(({ eventId }) => eventId);
    await expect.poll(() => seen.filter((id) => ids.includes(id))).toEqual(ids);
  });

  it('are one TOOL_END for a refused call, and none for a voided one or a resolution (HK-1, TG-5)', async () => {
    const agent = await harness.agent();
    const refused = { status: CallStatus.REFUSED, stopReason: 'max_tool_calls' };
    const voided = { status: CallStatus.VOID, argsSha256: '' };
    const unknown = { status: CallStatus.UNKNOWN, stopReason: 'outcome_unknown:issue_refund' };
    await harness.report(
      await agent.receipt(await agent.propose('op-1', LOOK_UP), {}, refused),
      await agent.receipt(await agent.propose('op-2', LOOK_UP), {}, voided),
    );
    const paid = await agent.propose('op-3', refund(1));
    await harness.report(await agent.receipt(paid, {}, unknown));
    await harness.report(await agent.receipt(paid, {}, { revision: 2, resolvedBy: 'anna' }));
    const events = await toolEvents(agent);
    expect(
      events.map(({ callId, type, status }) => [callId, TOOL_EVENTS.get(type), status]),
    ).toEqual([
      ['op-1', 'TOOL_END', 'max_tool_calls'],
      ['op-3', 'TOOL_START', 'ok'],
      ['op-3', 'TOOL_END', 'outcome_unknown:issue_refund'],
    ]);
  });

  it('precede dependent events on the timeline, and are not published again for a gateway that publishes its own events (HK-1)', async () => {
    const own = await RefundHarness.start();
    try {
      const published: string[] = [];
      await own.supervisor.bus.subscribe({
        subject: HOOK_SUBJECTS,
        durable: 'test',
        handler: async ({ eventId }) => void published.push(eventId),
      });
      const agent = await own.agent();
      const receipt = await agent.execute('op-1', LOOK_UP, CONTEXT);
      await agent.propose('op-2', finalText('Done.'), { receipts: [receipt] });
      const { runId } = agent.scope;
      const events = await Array.fromAsync(own.supervisor.runs().watchRun({ runId }));
      expect(
        events.map(({ event }) => {
          const entry = event?.entry;
          return entry?.case === 'hook' ? entry.value.type : entry?.case;
        }),
      ).toEqual([
        HookEventType.RUN_START,
        'decision',
        HookEventType.TOOL_START,
        HookEventType.TOOL_END,
        'decision',
        HookEventType.RUN_END,
        'result',
      ]);
      const hooks = hooksOf(events);
      const tools = hooks.filter(({ type }) => TOOL_EVENTS.has(type));
      expect(tools.map(({ emitter }) => emitter)).toEqual(['tool-gateway', 'tool-gateway']);
      const others = hooks.filter((event) => !tools.includes(event));
      await expect.poll(() => published).toEqual(others.map(({ eventId }) => eventId));
    } finally {
      await own.close();
    }
  });
});
