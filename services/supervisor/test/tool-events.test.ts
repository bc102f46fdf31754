import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { HOOK_SUBJECTS } from '@writ/bus';
import { type HookEvent, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import type { WatchRunResponse } from '@writ/contracts/writ/run/v1/run_service_pb';
import { derivedId } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONTEXT, type DeskAgent, finalText, LOOK_UP, RefundDesk, refund } from './refund-desk.ts';
import { refundTools } from './refund-tools.ts';

const STARTED = new Date('2026-11-02T10:00:00.000Z');
const ENDED = new Date('2026-11-02T10:00:01.250Z');
const TIMES = { startTime: timestampFromDate(STARTED), endTime: timestampFromDate(ENDED), step: 7 };

/** The TOOL events by their names. */
const TOOL_EVENTS: ReadonlyMap<HookEventType, string> = new Map<HookEventType, string>([
  [HookEventType.TOOL_START, 'TOOL_START'],
  [HookEventType.TOOL_END, 'TOOL_END'],
]);

function hooksOf(events: readonly WatchRunResponse[]): HookEvent[] {
  return events.flatMap(({ event }) => (event?.entry.case === 'hook' ? [event.entry.value] : []));
}

describe('tool events of a gateway without a bus', () => {
  let desk: RefundDesk;
  const seen: string[] = [];
  beforeAll(async () => {
    desk = await RefundDesk.start();
    desk.listTools(refundTools(), 'v1', false);
    await desk.supervisor.bus.subscribe({
      subject: HOOK_SUBJECTS,
      durable: 'test',
      handler: async ({ eventId }) => void seen.push(eventId),
    });
  });
  afterAll(() => desk.close());

  /** The TOOL events on the timeline of a run that is over. */
  async function toolEvents(agent: DeskAgent): Promise<HookEvent[]> {
    const { runId } = agent.scope;
    const runs = desk.supervisor.runs();
    await runs.cancelRun({ requestId: `c-${runId}`, runId });
    const events = await Array.fromAsync(runs.watchRun({ runId }));
    return hooksOf(events).filter(({ type }) => TOOL_EVENTS.has(type));
  }

  it('are told by the supervisor from the receipt, as that gateway would have (HK-1)', async () => {
    const agent = await desk.agent();
    const decision = await agent.propose('op-1', LOOK_UP);
    const receipt = await agent.receipt(decision, CONTEXT, TIMES);
    await agent.propose('op-2', refund(0), { receipts: [receipt] });
    await desk.report(receipt, receipt);
    const events = await toolEvents(agent);
    const { tenant, runId, agentInstance } = agent.scope;
    const said = {
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
      { ...said, eventId: derivedId('evt', runId, agentInstance, 'op-1', 'TOOL_START') },
      {
        ...said,
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

  it('are one TOOL_END for a refused call, none for a burnt one, and none again for what a person found out (HK-1, TG-5)', async () => {
    const agent = await desk.agent();
    const refused = { status: CallStatus.REFUSED, stopReason: 'max_tool_calls' };
    const burnt = { status: CallStatus.VOID, argsSha256: '' };
    const unknown = { status: CallStatus.UNKNOWN, stopReason: 'outcome_unknown:issue_refund' };
    await desk.report(
      await agent.receipt(await agent.propose('op-1', LOOK_UP), {}, refused),
      await agent.receipt(await agent.propose('op-2', LOOK_UP), {}, burnt),
    );
    const paid = await agent.propose('op-3', refund(1));
    await desk.report(await agent.receipt(paid, {}, unknown));
    await desk.report(await agent.receipt(paid, {}, { revision: 2, resolvedBy: 'anna' }));
    const events = await toolEvents(agent);
    expect(
      events.map(({ callId, type, status }) => [callId, TOOL_EVENTS.get(type), status]),
    ).toEqual([
      ['op-1', 'TOOL_END', 'max_tool_calls'],
      ['op-3', 'TOOL_START', 'ok'],
      ['op-3', 'TOOL_END', 'outcome_unknown:issue_refund'],
    ]);
  });

  it('are left to a gateway that says that it tells them (HK-1)', async () => {
    const own = await RefundDesk.start();
    try {
      const agent = await own.agent();
      const receipt = await agent.execute('op-1', LOOK_UP, CONTEXT);
      await agent.propose('op-2', finalText('Done.'), { receipts: [receipt] });
      const { runId } = agent.scope;
      const events = await Array.fromAsync(own.supervisor.runs().watchRun({ runId }));
      expect(hooksOf(events).map(({ type }) => type)).toEqual([
        HookEventType.RUN_START,
        HookEventType.RUN_END,
      ]);
    } finally {
      await own.close();
    }
  });
});
