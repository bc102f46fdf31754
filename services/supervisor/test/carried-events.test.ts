import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { hookSubject } from '@writ/bus';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import {
  ToolGatewayService,
  VoidState,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { eventMac } from '@writ/identity';
import { derivedId } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { finalText, LOOK_UP, RefundHarness, type TestAgent } from './refund-harness.ts';

/** A proposal that policy blocks, so that no writ is left at the end of the run. */
const BLOCKED = finalText('Done.');

type Name = Exclude<keyof typeof HookEventType, 'UNSPECIFIED'>;

/** An event of an agent as its emitter encodes it. */
function encoded(
  { scope }: TestAgent,
  name: Name,
  changes: Omit<MessageInitShape<typeof HookEventSchema>, '$typeName'> = {},
): Uint8Array<ArrayBuffer> {
  const { tenant, runId, agentInstance } = scope;
  const { step = 1, callId = '' } = changes;
  const isLlm = name.startsWith('LLM');
  const parts = isLlm ? [callId, name, '1'] : [`step-${step}`, name];
  const bytes = toBinary(
    HookEventSchema,
    create(HookEventSchema, {
      eventId: derivedId('evt', runId, agentInstance, ...parts),
      type: HookEventType[name],
      emitter: isLlm ? 'execution-meter' : 'agent-worker',
      tenant,
      runId,
      agent: { name: 'refund-worker', instance: agentInstance },
      step,
      attempt: isLlm ? 1 : 0,
      ...changes,
    }),
  );
  return new Uint8Array(bytes);
}

describe('the events of an agent', () => {
  let harness: RefundHarness;
  beforeAll(async () => {
    harness = await RefundHarness.start();
  });
  afterAll(() => harness.close());

  /** The key with which the supervisor opened the tab of an agent. */
  const keyOf = ({ scope }: TestAgent) =>
    harness.supervisor.fakes
      .requests(ExecutionMeterService.method.openTab)
      .find(({ runId }) => runId === scope.runId)?.eventKey ?? new Uint8Array();

  const publish = async ({ scope }: TestAgent, name: Name, payload: Uint8Array, eventId: string) =>
    await harness.supervisor.bus.publish({
      eventId,
      subject: hookSubject({
        tenant: scope.tenant,
        runId: scope.runId,
        agent: scope.agentInstance,
        event: name,
      }),
      payload,
      headers: {},
    });

  /** Cancels a run; returns the entries of its timeline. */
  async function entries({ scope: { runId } }: TestAgent) {
    await harness.supervisor.runs().cancelRun({ requestId: `c-${runId}`.slice(0, 64), runId });
    const events = await Array.fromAsync(harness.supervisor.runs().watchRun({ runId }));
    return events.map(({ event }) => event?.entry);
  }

  async function timeline(agent: TestAgent): Promise<unknown[]> {
    const all = await entries(agent);
    return all.map((entry) => (entry?.case === 'hook' ? entry.value.type : entry?.case));
  }

  const { RUN_START, RUN_END, STEP_START, STEP_END, LLM_START, LLM_END } = HookEventType;

  it('are recorded when a repeated request carries them (HK-1)', async () => {
    const agent = await harness.agent();
    await agent.propose('op-1', BLOCKED);
    const call = { callId: 'op-0' };
    const events = [
      { event: encoded(agent, 'STEP_START'), mac: new Uint8Array() },
      ...(['LLM_START', 'LLM_END'] as const).map((name) => {
        const event = encoded(agent, name, call);
        return { event, mac: eventMac(keyOf(agent), event) };
      }),
    ];
    await agent.propose('op-1', BLOCKED, { events });
    await agent.propose('op-1', BLOCKED, { events });
    expect(await timeline(agent)).toEqual([
      RUN_START,
      'decision',
      STEP_START,
      LLM_START,
      LLM_END,
      RUN_END,
      'result',
    ]);
  });

  it('precede the decision of the request that carries them, and forged events are discarded (HK-1, SYS-6)', async () => {
    const agent = await harness.agent();
    const other = await harness.agent();
    const key = keyOf(agent);
    expect(key).toHaveLength(32);
    const own = (event: Uint8Array<ArrayBuffer>) => ({ event, mac: new Uint8Array() });
    const metered = (event: Uint8Array<ArrayBuffer>, by = key) => ({
      event,
      mac: eventMac(by, event),
    });
    const call = { callId: 'op-0' };
    const forged = encoded(agent, 'LLM_END', { ...call, costNanoUsd: 1n });
    const events = [
      own(encoded(agent, 'STEP_START')),
      metered(encoded(agent, 'LLM_START', call)),
      own(forged),
      metered(forged, keyOf(other)),
      { event: forged, mac: eventMac(key, encoded(agent, 'LLM_END', call)) },
      own(encoded(agent, 'TOOL_END', { emitter: 'tool-gateway', callId: 'op-1' })),
      own(encoded(agent, 'RUN_END', { emitter: 'supervisor' })),
      own(encoded(other, 'STEP_START')),
      own(new Uint8Array([255, 255])),
    ];
    await agent.propose('op-1', BLOCKED, { events });
    expect(await timeline(agent)).toEqual([
      RUN_START,
      STEP_START,
      LLM_START,
      'decision',
      RUN_END,
      'result',
    ]);
    await other.propose('op-1', BLOCKED);
    expect(await timeline(other)).toEqual([RUN_START, 'decision', RUN_END, 'result']);
  });

  it('stay buffered while a worker that took over repeats a review of an earlier step (HK-1)', async () => {
    const agent = await harness.agent();
    const { runId, agentInstance } = agent.scope;
    const idOf = (...parts: string[]) => derivedId('evt', runId, agentInstance, ...parts);
    await agent.propose('op-1', BLOCKED);
    const call = { callId: 'op-2', step: 2 };
    const end = encoded(agent, 'LLM_END', call);
    await publish(agent, 'LLM_END', end, idOf('op-2', 'LLM_END', '1'));
    await agent.propose('op-1', BLOCKED);
    const metered = (event: Uint8Array<ArrayBuffer>) => ({
      event,
      mac: eventMac(keyOf(agent), event),
    });
    const events = [
      { event: encoded(agent, 'STEP_START', { step: 2 }), mac: new Uint8Array() },
      metered(encoded(agent, 'LLM_START', call)),
      metered(end),
    ];
    await agent.propose('op-3', BLOCKED, { events });
    expect((await timeline(agent)).slice(0, 6)).toEqual([
      RUN_START,
      'decision',
      STEP_START,
      LLM_START,
      LLM_END,
      'decision',
    ]);
  });

  it('are recorded after their predecessors, or at the next review if a predecessor is lost (HK-1)', async () => {
    const agent = await harness.agent();
    const { runId, agentInstance } = agent.scope;
    const idOf = (...parts: string[]) => derivedId('evt', runId, agentInstance, ...parts);
    const sent = { callId: 'op-0' };
    const start = encoded(agent, 'LLM_START', sent);
    const end = encoded(agent, 'LLM_END', sent);
    const lost = encoded(agent, 'LLM_END', { callId: 'op-9' });
    await publish(agent, 'LLM_END', end, idOf('op-0', 'LLM_END', '1'));
    await publish(agent, 'LLM_END', lost, idOf('op-9', 'LLM_END', '1'));
    await publish(agent, 'LLM_START', start, idOf('op-0', 'LLM_START', '1'));
    const begun = encoded(agent, 'STEP_START');
    await publish(agent, 'STEP_START', begun, idOf('step-1', 'STEP_START'));
    await publish(agent, 'LLM_START', start, idOf('op-0', 'LLM_START', '1'));
    await agent.propose('op-1', BLOCKED);
    const seen = await timeline(agent);
    expect(seen.slice(0, 6)).toEqual([
      RUN_START,
      STEP_START,
      LLM_START,
      LLM_END,
      LLM_END,
      'decision',
    ]);
  });

  it('wait for the model calls of an earlier step without a review, in any order of delivery (HK-1)', async () => {
    const agent = await harness.agent();
    const { runId, agentInstance } = agent.scope;
    const idOf = (...parts: string[]) => derivedId('evt', runId, agentInstance, ...parts);
    const publishLlm = async (name: 'LLM_START' | 'LLM_END', callId: string, step: number) => {
      const id = idOf(callId, name, '1');
      await publish(agent, name, encoded(agent, name, { callId, step }), id);
    };
    const publishStep = async (name: 'STEP_START' | 'STEP_END', step: number, after: string[]) => {
      const id = idOf(`step-${step}`, name);
      await publish(agent, name, encoded(agent, name, { step, after }), id);
    };
    await publishStep('STEP_START', 1, []);
    await publishStep('STEP_END', 1, [idOf('op-0', 'LLM_END', '1')]);
    await publishStep('STEP_START', 2, [idOf('step-1', 'STEP_END')]);
    await publishLlm('LLM_START', 'op-1', 2);
    await publishLlm('LLM_END', 'op-1', 2);
    await publishLlm('LLM_START', 'op-0', 1);
    await publishLlm('LLM_END', 'op-0', 1);
    const order = [
      RUN_START,
      ...[STEP_START, LLM_START, LLM_END, STEP_END],
      ...[STEP_START, LLM_START, LLM_END],
    ];
    expect((await timeline(agent)).slice(0, order.length)).toEqual(order);
  });

  it('wait for the model calls and guardrails of the same step, in any order of delivery (HK-1)', async () => {
    const agent = await harness.agent();
    const { runId, agentInstance } = agent.scope;
    const idOf = (...parts: string[]) => derivedId('evt', runId, agentInstance, ...parts);
    const ended = idOf('op-0', 'LLM_END', '1');
    const tripped = idOf('op-1', 'GUARDRAIL_TRIP');
    const trip = { eventId: tripped, callId: 'op-1', after: [ended] };
    const again = { callId: 'op-2', after: [ended, tripped] };
    const publishLlm = async (name: 'LLM_START' | 'LLM_END', call: { readonly callId: string }) => {
      await publish(agent, name, encoded(agent, name, call), idOf(call.callId, name, '1'));
    };
    const begun = encoded(agent, 'STEP_START');
    await publish(agent, 'STEP_START', begun, idOf('step-1', 'STEP_START'));
    await publishLlm('LLM_START', again);
    await publishLlm('LLM_END', again);
    await publish(agent, 'GUARDRAIL_TRIP', encoded(agent, 'GUARDRAIL_TRIP', trip), tripped);
    await publishLlm('LLM_START', { callId: 'op-0' });
    await publishLlm('LLM_END', { callId: 'op-0' });
    const seen = (await entries(agent)).flatMap((entry) =>
      entry?.case === 'hook' && entry.value.callId !== ''
        ? [[entry.value.type, entry.value.callId]]
        : [],
    );
    expect(seen).toEqual([
      [LLM_START, 'op-0'],
      [LLM_END, 'op-0'],
      [HookEventType.GUARDRAIL_TRIP, 'op-1'],
      [LLM_START, 'op-2'],
      [LLM_END, 'op-2'],
    ]);
  });

  it('are returned to the worker in the cancel request, in case it has not stored them (HK-1)', async () => {
    const agent = await harness.agent();
    const { fakes } = harness.supervisor;
    const begun = encoded(agent, 'STEP_START');
    await agent.propose('op-1', BLOCKED, { events: [{ event: begun, mac: new Uint8Array() }] });
    await timeline(agent);
    const orders = fakes
      .requests(AgentWorkerService.method.cancel)
      .filter(({ runId }) => runId === agent.scope.runId);
    expect(orders.map(({ recordedEvents }) => recordedEvents)).toEqual([[Buffer.from(begun)]]);
  });

  it('precede RUN_END when the worker and the meter return them at the end of the agent (HK-1)', async () => {
    const agent = await harness.agent();
    const { fakes } = harness.supervisor;
    const own = (event: Uint8Array<ArrayBuffer>) => ({ event, mac: new Uint8Array() });
    const call = { callId: 'op-0' };
    fakes.answer(AgentWorkerService.method.cancel, () => ({
      ended: 1,
      events: [own(encoded(agent, 'STEP_START')), own(encoded(agent, 'STEP_END'))],
    }));
    fakes.answer(ExecutionMeterService.method.closeTab, () => ({
      tab: {},
      events: [encoded(agent, 'LLM_START', call), encoded(agent, 'LLM_END', call)],
    }));
    expect(await timeline(agent)).toEqual([
      RUN_START,
      STEP_START,
      LLM_START,
      LLM_END,
      STEP_END,
      RUN_END,
      'result',
    ]);
  });

  it('precede RUN_END when the worker returns them and a call in flight delays the end (HK-1)', async () => {
    const agent = await harness.agent();
    const { fakes } = harness.supervisor;
    const unused = await agent.propose('op-1', LOOK_UP);
    const receipt = await agent.receipt(unused, {}, { status: CallStatus.VOID, argsSha256: '' });
    const own = (event: Uint8Array<ArrayBuffer>) => ({ event, mac: new Uint8Array() });
    fakes.answer(AgentWorkerService.method.cancel, () => ({
      ended: 1,
      events: [
        own(encoded(agent, 'STEP_START', { step: 2 })),
        own(encoded(agent, 'STEP_END', { step: 2 })),
      ],
    }));
    fakes.answer(ExecutionMeterService.method.closeTab, () => ({ tab: {} }));
    const states = [VoidState.IN_FLIGHT, VoidState.BURNT];
    fakes.answer(ToolGatewayService.method.voidWrit, () => ({
      state: states.shift() ?? VoidState.BURNT,
      receipt,
    }));
    expect(await timeline(agent)).toEqual([
      RUN_START,
      'decision',
      STEP_START,
      STEP_END,
      RUN_END,
      'result',
    ]);
  });
});
