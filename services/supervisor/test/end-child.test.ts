import { create, toBinary } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { FreezeCause } from '@writ/contracts/writ/control/v1/freeze_pb';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { ManualClock, UnavailableError } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Family, type Member } from './family.ts';

const { release } = SpawnBudgetService.method;

describe('EndChild', () => {
  let family: Family;
  let lead: Member;
  beforeEach(async () => {
    family = await Family.start();
    lead = await family.lead();
  });
  afterEach(() => family.close());
  const released = () =>
    family.supervisor.fakes.requests(release).map(({ agentInstance }) => agentInstance);

  it('freezes, cancels, closes the tab and then releases the slot (SUP-8, SB-3)', async () => {
    const scout = await lead.child('op-1');
    const { fakes } = family.supervisor;
    const before = fakes.sequence.length;
    const digger = { name: 'digger', instance: 'digger-1' };
    fakes.answer(release, () => ({
      released: true,
      changes: [{ agent: digger, from: SlotState.PAUSED, to: SlotState.ACTIVE }],
    }));
    const answer = await lead.end(scout.instance, 'timed_out');
    expect(answer).toMatchObject({ stopReason: 'cancelled', resumed: [digger] });
    expect(fakes.sequence.slice(before)).toEqual(['Freeze', 'Cancel', 'CloseTab', 'Release']);
    for (const service of [ExecutionMeterService, ToolGatewayService]) {
      expect(fakes.requests(service.method.freeze)[0]?.order).toMatchObject({
        cause: FreezeCause.END,
        scope: {
          kind: { case: 'agent', value: { runId: lead.runId, agentInstance: scout.instance } },
        },
      });
    }
    expect(fakes.requests(AgentWorkerService.method.cancel)[0]).toMatchObject({
      agentInstance: scout.instance,
      stopReason: 'cancelled',
    });
    await expect(scout.final('op-1')).rejects.toMatchObject({ reason: 'RUN_ENDED' });
    // The run continues without the child.
    const { run } = await family.supervisor.runs().getRun({ runId: lead.runId });
    expect(run?.state).toBe(RunState.RUNNING);
  });

  it('records the last events of a child before its RUN_END when its tab closes late (HK-1)', async () => {
    const scout = await lead.child('op-1');
    const { runId } = lead;
    const { fakes } = family.supervisor;
    const agent = { name: 'scout', instance: scout.instance };
    const step = { type: HookEventType.STEP_START, emitter: 'agent-worker', step: 1 };
    const last = create(HookEventSchema, {
      eventId: 'evt-1',
      tenant: 'acme',
      runId,
      agent,
      ...step,
    });
    const event = toBinary(HookEventSchema, last);
    const events = [{ event, mac: new Uint8Array() }];
    fakes.answer(AgentWorkerService.method.cancel, () => ({ ended: 1, events }));
    fakes.fail(
      ExecutionMeterService.method.closeTab,
      new UnavailableError('UNAVAILABLE', 'The peer is down.'),
    );
    await lead.end(scout.instance);
    await family.cancelled(runId);
    const timeline = await Array.fromAsync(family.supervisor.runs().watchRun({ runId }));
    const ofScout = timeline.flatMap(({ event: { entry, agent: of } = {} }) =>
      entry?.case === 'hook' && of?.instance === scout.instance ? [entry.value.type] : [],
    );
    const { RUN_START, STEP_START, RUN_END } = HookEventType;
    expect(ofScout).toEqual([RUN_START, STEP_START, RUN_END]);
  });

  it('is idempotent when it is repeated with the same or another call_id (SB-3)', async () => {
    const scout = await lead.child('op-1');
    const first = await lead.end(scout.instance);
    expect(await lead.end(scout.instance)).toEqual(first);
    expect(await lead.end(scout.instance, 'timed_out', 'op-9')).toEqual(first);
    expect(released()).toEqual([scout.instance]);
    await expect(lead.end(scout.instance, 'timed_out')).rejects.toMatchObject({
      reason: 'CALL_ID_REUSED',
    });
    const other = await lead.child('op-2');
    await expect(
      lead.end(other.instance, 'replied', `end-${scout.instance}`),
    ).rejects.toMatchObject({ reason: 'CALL_ID_REUSED' });
  });

  it('keeps the stop reason of a child that ended with an approved final (RT-4, SV-1)', async () => {
    const scout = await lead.child('op-1');
    expect((await scout.final('op-1', 'Seen.')).runEnded).toBe(true);
    expect((await lead.end(scout.instance)).stopReason).toBe('success');
    expect(released()).toEqual([scout.instance]);
    const { run } = await family.supervisor.runs().getRun({ runId: lead.runId });
    expect(run?.state).toBe(RunState.RUNNING);
  });

  it('ends only children of the caller (SUP-9, SYS-6)', async () => {
    const nested = await lead.child('op-1', 'lead');
    const scout = await nested.child('op-1');
    const other = await (await family.lead()).child('op-1');
    for (const instance of [scout.instance, other.instance, lead.instance, 'unknown']) {
      await expect(lead.end(instance, 'replied', 'op-5')).rejects.toMatchObject({
        reason: 'CHILD_NOT_FOUND',
      });
    }
    await expect(scout.end(nested.instance)).rejects.toMatchObject({ reason: 'CHILD_NOT_FOUND' });
    expect((await nested.end(scout.instance)).stopReason).toBe('cancelled');
  });

  it('withdraws the pending approvals of the child (SV-5)', async () => {
    const nested = await lead.child('op-1', 'lead');
    const { decision } = await nested.spawn('op-1', 'scout', 'Do risky things.');
    await lead.end(nested.instance);
    const approvals = family.supervisor.as('anna', ApprovalService);
    const { approval } = await approvals.getApproval({ approvalId: decision?.approvalId ?? '' });
    expect(approval?.state).toBe(ApprovalState.WITHDRAWN);
  });

  it('ends the children of a child that EndChild or an approved final ends (SUP-8)', async () => {
    const nested = await lead.child('op-1', 'lead');
    const scout = await nested.child('op-1');
    const ended = await lead.child('op-2', 'lead');
    const orphan = await ended.child('op-1');
    await lead.end(nested.instance);
    await ended.final('op-2');
    await expect
      .poll(() => released().toSorted(), { interval: 5 })
      .toEqual([nested.instance, scout.instance, orphan.instance].toSorted());
    await expect(scout.final('op-1')).rejects.toMatchObject({
      metadata: { stop_reason: 'cancelled' },
    });
    await expect(orphan.final('op-1')).rejects.toMatchObject({ reason: 'RUN_ENDED' });
  });

  it('leaves the remaining children to the end of the run, which closes every tab and the pool (SUP-8)', async () => {
    const scout = await lead.child('op-1');
    const run = await family.cancelled(lead.runId);
    expect(run?.state).toBe(RunState.CANCELLED);
    const tabs = family.supervisor.fakes
      .requests(ExecutionMeterService.method.closeTab)
      .map(({ tab }) => tab?.agentInstance);
    expect(tabs).toEqual([scout.instance, lead.instance]);
    expect(released()).toEqual([]);
    expect(await lead.end(scout.instance)).toMatchObject({ stopReason: 'cancelled', resumed: [] });
    expect(released()).toEqual([]);
  });
});

describe('a child whose deadline has passed', () => {
  const clock = new ManualClock(new Date());
  let family: Family;
  beforeEach(async () => {
    family = await Family.start({ clock });
  });
  afterEach(() => family.close());

  it('is frozen, cancelled and ended automatically while its run continues (EM-1, SUP-8)', async () => {
    const lead = await family.lead();
    const executionBudget = { deadline: durationFromMs(20_000) };
    const scout = await lead.child('op-1', 'scout', { executionBudget });
    const nested = await lead.child('op-2', 'lead');
    clock.advance(19_999);
    const { fakes } = family.supervisor;
    const before = fakes.sequence.length;
    clock.advance(1);
    await fakes.called(release);
    expect(fakes.sequence.slice(before)).toEqual(['Freeze', 'Cancel', 'CloseTab', 'Release']);
    expect(fakes.requests(AgentWorkerService.method.cancel)).toMatchObject([
      { agentInstance: scout.instance, stopReason: 'deadline' },
    ]);
    expect((await lead.end(scout.instance)).stopReason).toBe('deadline');
    const { run } = await family.supervisor.runs().getRun({ runId: lead.runId });
    expect(run?.state).toBe(RunState.RUNNING);
    // The other child has no earlier deadline than the run.
    expect((await lead.end(nested.instance)).stopReason).toBe('cancelled');
  });
});
