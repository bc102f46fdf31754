import { fromBinary } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { ResultKind } from '@writ/contracts/writ/tool/v1/tool_pb';
import { sha256Hex } from '@writ/kernel';
import { context, contextFromTraceparent } from '@writ/telemetry';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Fixture, startFixture } from './gateway-fixture.ts';
import { keyOf } from './test-call.ts';
import { TOOLS } from './tools-yaml.ts';

let fixture: Fixture;

beforeAll(async () => {
  fixture = await startFixture({
    tools: { ...TOOLS, big: { side_effect: 'read_only', max_output_bytes: 20 } },
  });
});

afterAll(() => fixture[Symbol.asyncDispose]());

describe('CallTool under a matching writ', () => {
  it('runs the tool and returns its result with a signed receipt (TG-1, TG-8)', async () => {
    fixture.world.on('pay', async () => ({ status: 'ok', refund: { usd: 12.5, note: 'secret' } }));
    const answer = await fixture.call({
      callId: 'op-1',
      args: { to: 'anna', cents: 1250 },
      writ: { resultFields: ['refund.usd', 'status', 'error'] },
    });
    const content = '{"status":"ok","refund":{"usd":12.5,"note":"secret"}}';
    expect(answer).toMatchObject({
      status: CallStatus.OK,
      stopReason: '',
      replayed: false,
      result: { kind: ResultKind.JSON, content, truncated: false, fullSizeBytes: 53n },
    });
    const execution = fixture.world.executions.at(-1);
    expect(execution?.args).toEqual({ to: 'anna', cents: 1250 });
    expect(execution?.call).toMatchObject({
      tenant: 'acme',
      runId: 'run_1',
      agentName: 'payer',
      callId: 'op-1',
      idempotencyKey: expect.stringMatching(/^idem_/),
    });
    const { claims } = await fixture.receipt(answer.receipt);
    expect(claims).toMatchObject({
      tenant: 'acme',
      runId: 'run_1',
      agent: { name: 'payer', instance: 'payer-1' },
      callId: 'op-1',
      tool: 'pay',
      writId: expect.stringMatching(/^writ_/),
      status: CallStatus.OK,
      resultSha256: sha256Hex(content),
      resultFields: { 'refund.usd': 12.5, status: 'ok' },
      argsSha256: sha256Hex('{"to":"anna","cents":1250}'),
      revision: 1,
      step: 3,
    });
    expect(claims.startTime && timestampDate(claims.startTime).getTime()).toBeGreaterThan(0);
    expect(claims.registryVersion).toMatch(/^[0-9a-f]{64}$/);
  });

  it('commits twice, or once for a refusal (TG-5)', async () => {
    const { store } = fixture.gateway;
    const before = store.commits;
    await fixture.call({ callId: 'op-2' });
    expect(store.commits - before).toBe(2);
    const refused = await fixture.call({ callId: 'op-3', args: {} });
    expect(refused.stopReason).toBe('tool_bad_args:pay');
    expect(store.commits - before).toBe(3);
  });

  it('publishes start and end once, in the transactions of intent and outcome (HK-1, HK-2)', async () => {
    await fixture.call({ callId: 'op-4' });
    const published = await vi.waitUntil(() => {
      const events = fixture.events
        .map(({ payload }) => fromBinary(HookEventSchema, payload))
        .filter(({ callId }) => callId === 'op-4');
      return events.length === 2 ? events : undefined;
    });
    expect(published).toMatchObject([
      { type: HookEventType.TOOL_START, status: 'ok', toolName: 'pay', step: 3 },
      {
        type: HookEventType.TOOL_END,
        status: 'ok',
        sessionId: 'session_1',
        agent: { name: 'payer', instance: 'payer-1' },
      },
    ]);
    expect(published[1]?.duration).toBeDefined();
    const subject = fixture.events.find(
      ({ eventId }) => eventId === published[1]?.eventId,
    )?.subject;
    expect(subject).toBe('writ.hooks.v1.acme.run_1.payer-1.TOOL_END');
  });

  it('runs the tool in a span of the trace of the request (SYS-1)', async () => {
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const caller = contextFromTraceparent(`00-${traceId}-b7ad6b7169203331-01`);
    await context.with(caller, () => fixture.call({ callId: 'op-5' }));
    const span = await vi.waitUntil(() =>
      fixture.spans.spans(traceId).find(({ name }) => name === 'execute_tool pay'),
    );
    expect(span.attributes).toMatchObject({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'pay',
      'gen_ai.tool.call.id': 'op-5',
      'gen_ai.agent.id': 'payer-1',
      'writ.run_id': 'run_1',
    });
    expect(JSON.stringify(span.attributes)).not.toContain('anna');
  });

  it('truncates a result that is too large and keeps the digest of the full result (TG-6)', async () => {
    const text = 'x'.repeat(100);
    fixture.world.on('big', async () => ({ text }));
    const whole = JSON.stringify({ text });
    const answer = await fixture.call({
      tool: 'big',
      callId: 'op-6',
      writ: { resultFields: ['text'] },
    });
    expect(answer.result).toMatchObject({
      kind: ResultKind.TEXT,
      content: whole.slice(0, 20),
      truncated: true,
      fullSizeBytes: BigInt(whole.length),
      fullSha256: sha256Hex(whole),
    });
    expect(answer.message).toContain('was cut');
    const { claims } = await fixture.receipt(answer.receipt);
    expect(claims.resultSha256).toBe(sha256Hex(whole.slice(0, 20)));
    expect(claims.resultFields).toEqual({ text });
  });

  it('returns the receipt to the agent and to the supervisor, and to no other agent (TG-8)', async () => {
    const { receipt } = await fixture.call({ callId: 'op-7' });
    const call = keyOf({ callId: 'op-7' });
    const tokenOf = async (instance: string) => {
      const agent = { name: 'payer', instance };
      const credentials = await fixture.supervisor.agentCredentials({
        tenant: 'acme',
        runId: 'run_1',
        agent,
      });
      return { agentToken: credentials.toolGatewayToken, epoch: 1n };
    };
    expect(await fixture.asSupervisor.getReceipt({ call })).toMatchObject({ receipt });
    expect(await fixture.asWorker.getReceipt({ call }, await tokenOf('payer-1'))).toMatchObject({
      receipt,
    });
    await expect(
      fixture.asWorker.getReceipt({ call }, await tokenOf('payer-2')),
    ).rejects.toMatchObject({ reason: 'CALL_WRONG_OWNER' });
    await expect(
      fixture.asSupervisor.getReceipt({ call: keyOf({ callId: 'op-none' }) }),
    ).rejects.toMatchObject({ reason: 'RECEIPT_NOT_FOUND' });
  });
});
