import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { FreezeCause } from '@writ/contracts/writ/control/v1/freeze_pb';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { TabState } from '@writ/contracts/writ/meter/v1/tab_pb';
import { Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import { type Run, RunState, RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import {
  ToolGatewayService,
  VoidState,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { ManualClock, PreconditionError } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { AGENTS_YAML, Family, type Member } from './family.ts';
import { CONTEXT, finalText, LOOK_UP, RefundHarness } from './refund-harness.ts';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

const START = { requestId: 'req-1', agent: 'worker', goal: 'Do it.' };

describe('the end of a run', () => {
  let supervisor: SupervisorUnderTest;
  const clock = new ManualClock(new Date());
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start({ clock });
  });
  afterEach(() => supervisor.close());

  async function started(): Promise<string> {
    const { run } = await supervisor.runs().startRun(START);
    await supervisor.fakes.called(AgentWorkerService.method.deliver);
    return run?.runId ?? '';
  }

  async function untilRunning(runId: string): Promise<void> {
    const stateNow = async () => (await supervisor.runs().getRun({ runId })).run?.state;
    await expect.poll(stateNow, { interval: 5 }).toBe(RunState.RUNNING);
  }

  /** Resolves with the run when it has ended. */
  async function ended(runId: string): Promise<Run | undefined> {
    await Array.fromAsync(supervisor.runs().watchRun({ runId }));
    return (await supervisor.runs().getRun({ runId })).run;
  }

  it('freezes, cancels, closes tab and pool, and then becomes terminal (SUP-8, AG-7)', async () => {
    const runId = await started();
    const cancelled = await supervisor
      .runs()
      .cancelRun({ requestId: 'c-1', runId, reason: 'Not needed.' });
    expect(cancelled.run?.state).toBe(RunState.ENDING);
    const run = await ended(runId);
    expect(run).toMatchObject({
      state: RunState.CANCELLED,
      result: { status: RunStatus.STOPPED, stopReason: 'cancelled', usage: { costNanoUsd: 4200n } },
    });
    const { fakes } = supervisor;
    expect(fakes.sequence.slice(3)).toEqual(['Freeze', 'Cancel', 'CloseTab', 'ClosePool']);
    for (const service of [ExecutionMeterService, ToolGatewayService]) {
      expect(fakes.requests(service.method.freeze)[0]?.order).toMatchObject({
        cause: FreezeCause.END,
        scope: { kind: { case: 'run', value: { tenant: 'acme', runId } } },
        retention: HistoryRetention.PERMANENT,
      });
    }
    expect(fakes.requests(AgentWorkerService.method.cancel)[0]).toMatchObject({
      stopReason: 'cancelled',
      agentInstance: '',
    });
  });

  it('happens once when an outcome and a cancellation race (RT-4)', async () => {
    const runId = await started();
    const { supervision, options } = await supervisor.worker();
    const report = { requestId: 'o-1', stopReason: 'llm_timeout', phase: 'worker' } as const;
    const [reported] = await Promise.all([
      supervision.reportOutcome(report, options),
      supervisor.runs().cancelRun({ requestId: 'c-1', runId }),
    ]);
    const run = await ended(runId);
    expect(run?.result?.stopReason).toBe(reported.stopReason);
    expect((await supervision.reportOutcome(report, options)).stopReason).toBe(reported.stopReason);
    const repeated = await supervisor.runs().cancelRun({ requestId: 'c-2', runId });
    expect(repeated.run).toEqual(run);
    expect(supervisor.fakes.requests(SpawnBudgetService.method.closePool)).toHaveLength(1);
  });

  it('rejects the request_id of a cancellation for another run', async () => {
    const runId = await started();
    const other = await supervisor.runs().startRun({ ...START, requestId: 'req-2' });
    await supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    await expect(
      supervisor.runs().cancelRun({ requestId: 'c-1', runId: other.run?.runId ?? '' }),
    ).rejects.toMatchObject({ reason: 'REQUEST_ID_REUSED' });
  });

  it('reports why the pool of the run could not be opened (SV-7)', async () => {
    supervisor.fakes.fail(
      SpawnBudgetService.method.openPool,
      new PreconditionError('POOL_CLOSED', 'The pool is closed.'),
    );
    const { run } = await supervisor.runs().startRun(START);
    expect(await ended(run?.runId ?? '')).toMatchObject({
      state: RunState.ERROR,
      // The tab was opened concurrently with the pool, and the fake meter reports a cost for every tab.
      result: {
        stopReason: 'error:POOL_CLOSED',
        detail: 'The pool is closed.',
        usage: { costNanoUsd: 4_200n },
      },
      // RUN_START, RUN_END and the result.
      lastSequence: 3n,
    });
    expect(supervisor.fakes.deliveries).toEqual([]);
  });

  it('does not deliver a run that was cancelled while its start was blocked', async () => {
    let release: () => void = () => undefined;
    const blocked = new Promise<void>((resolve) => {
      release = resolve;
    });
    supervisor.fakes.fail(ExecutionMeterService.method.openTab, () => blocked);
    const { run } = await supervisor.runs().startRun(START);
    const runId = run?.runId ?? '';
    await supervisor.fakes.called(ExecutionMeterService.method.openTab);
    await supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    release();
    expect(await ended(runId)).toMatchObject({ state: RunState.CANCELLED });
    expect(supervisor.fakes.deliveries).toEqual([]);
    expect(supervisor.fakes.sequence.at(-1)).toBe('ClosePool');
  });

  it('is recorded at its deadline (EM-1)', async () => {
    const { run } = await supervisor.runs().startRun({ ...START, agent: 'slow' });
    const runId = run?.runId ?? '';
    await untilRunning(runId);
    clock.advance(10 * 60_000);
    expect(await ended(runId)).toMatchObject({
      state: RunState.TIMED_OUT,
      result: { stopReason: 'deadline' },
    });
  });

  it('is recorded when its agent exceeds its active time (EM-1)', async () => {
    const runId = await started();
    await untilRunning(runId);
    clock.advance(30_000);
    expect((await supervisor.runs().getRun({ runId })).run?.state).toBe(RunState.RUNNING);
    clock.advance(1);
    expect(await ended(runId)).toMatchObject({ result: { stopReason: 'max_seconds' } });
  });

  it('does not count the downtime of the supervisor as active time (EM-1)', async () => {
    const runId = await started();
    await untilRunning(runId);
    await supervisor.stop();
    clock.advance(5 * 60_000);
    await supervisor.restart();
    const { supervision, options } = await supervisor.worker();
    const claim = { requestId: 'o-1', stopReason: 'max_seconds', phase: 'worker' } as const;
    await supervision.reportOutcome(claim, options);
    // The active time that the supervisor measured does not confirm the report.
    expect((await ended(runId))?.result?.unverified).toBe(true);
  });
});

describe('the end of a run that succeeded', () => {
  let family: Family;
  beforeEach(async () => {
    family = await Family.start();
  });
  afterEach(() => family.close());

  const freezes = () =>
    [ExecutionMeterService, ToolGatewayService].flatMap(({ method }) =>
      family.supervisor.fakes.requests(method.freeze),
    );

  it('closes tab and pool in one step when nothing is left to stop (AG-7, CO-1)', async () => {
    const lead = await family.lead();
    await lead.final('op-1');
    expect(await family.ended(lead.runId)).toMatchObject({
      state: RunState.COMPLETED,
      result: { status: RunStatus.OK, answer: 'Done.', usage: { costNanoUsd: 4200n } },
    });
    const { fakes } = family.supervisor;
    expect(freezes()).toEqual([]);
    const { runId, instance } = lead;
    const tab = { runId, agentInstance: instance };
    const waits = fakes.requests(AgentWorkerService.method.cancel);
    expect(waits).toMatchObject([{ ...tab, awaitEnd: true }]);
    const closes = fakes.requests(ExecutionMeterService.method.closeTab);
    expect(closes).toMatchObject([{ tab, onlyIfSettled: true }]);
    expect(fakes.requests(SpawnBudgetService.method.closePool)).toMatchObject([{ runId }]);
  });

  it('closes the tab while the worker ends the agent (AG-7, CO-1)', async () => {
    const { fakes } = family.supervisor;
    const lead = await family.lead();
    fakes.fail(AgentWorkerService.method.cancel, () =>
      fakes.called(ExecutionMeterService.method.closeTab),
    );
    await lead.final('op-1');
    expect((await family.ended(lead.runId))?.state).toBe(RunState.COMPLETED);
    expect(freezes()).toEqual([]);
  });

  it.each([
    [
      'the agent has not ended at the worker',
      () => family.supervisor.fakes.answer(AgentWorkerService.method.cancel, () => ({})),
    ],
    [
      'a call of the agent is in flight at the meter',
      () =>
        family.supervisor.fakes.answer(ExecutionMeterService.method.closeTab, (request) => ({
          tab: { state: request.onlyIfSettled ? TabState.OPEN : TabState.CLOSED },
        })),
    ],
    ['the run had another agent', (lead: Member) => lead.child('op-0')],
  ] as const)('freezes and cancels the run when %s (AG-7, SUP-8)', async (_, prepare) => {
    const lead = await family.lead();
    await prepare(lead);
    await lead.final('op-1');
    expect((await family.ended(lead.runId))?.result?.status).toBe(RunStatus.OK);
    const { runId } = lead;
    // The order that ends the child or the order that ends the run freezes the child, whichever runs first.
    const ofRun = freezes().filter(({ order }) => order?.scope?.kind.case === 'run');
    expect(ofRun.map(({ order }) => order?.scope?.kind.value)).toMatchObject([
      { runId },
      { runId },
    ]);
    const cancels = family.supervisor.fakes.requests(AgentWorkerService.method.cancel);
    expect(cancels.at(-1)).toMatchObject({ runId, agentInstance: '', awaitEnd: false });
  });
});

it('freezes and settles an ending run when a writ has no receipt (AG-7, TG-8)', async () => {
  const harness = await RefundHarness.start();
  onTestFinished(() => harness.close());
  const { fakes } = harness.supervisor;
  const agent = await harness.agent();
  const known = await agent.execute('op-1', LOOK_UP, CONTEXT);
  const unused = await agent.propose('op-2', LOOK_UP);
  const receipt = await agent.receipt(unused, {}, { status: CallStatus.VOID, argsSha256: '' });
  fakes.answer(ToolGatewayService.method.voidWrit, () => ({ state: VoidState.BURNT, receipt }));
  const final = await agent.propose('op-3', finalText('Done.'), { receipts: [known] });
  expect(final.verdict).toBe(Verdict.APPROVE);
  expect((await harness.ended(agent)).state).toBe(RunState.COMPLETED);
  expect(fakes.sequence.slice(-5)).toEqual([
    'Freeze',
    'Cancel',
    'VoidWrit',
    'CloseTab',
    'ClosePool',
  ]);
});

it('audits a receipt that matches no approved call, and ends the run without waiting for another receipt (TG-8, SV-8)', async () => {
  const harness = await RefundHarness.start();
  onTestFinished(() => harness.close());
  const { fakes } = harness.supervisor;
  const agent = await harness.agent();
  const known = await agent.execute('op-1', LOOK_UP, CONTEXT);
  const other = await agent.propose('op-2', LOOK_UP);
  const receipt = await agent.receipt(other, {}, { argsSha256: '0'.repeat(64) });
  fakes.answer(ToolGatewayService.method.voidWrit, () => ({ state: VoidState.RECEIPT, receipt }));
  await agent.propose('op-3', finalText('Done.'), { receipts: [known] });
  const { state, result } = await harness.ended(agent);
  expect(state).toBe(RunState.COMPLETED);
  const steps = result?.trace.map(({ callId, ok }) => [callId, ok]);
  expect(steps).toEqual([
    ['op-1', true],
    ['op-2', false],
    ['op-3', true],
  ]);
  // The gateway may also report the receipt.
  await harness.report(receipt);
  const audit = harness.supervisor.as('anna', AuditService);
  const { records } = await audit.listAuditRecords({ kind: 'refusal' });
  expect(records.map(({ canonicalJson }) => JSON.parse(canonicalJson))).toMatchObject([
    { call_id: 'op-2', reason: 'RECEIPT_MISMATCH' },
  ]);
});

it('sends the worker only the approved answer of the root to publish when the run ends (AG-5, RT-3)', async () => {
  const text = AGENTS_YAML.replace(
    'kind: orchestrator',
    'kind: orchestrator\n    output_topic: found',
  );
  const family = await Family.start({ config: { agents: { text, file: 'agents.yaml' } } });
  onTestFinished(() => family.close());
  // The worker died before the agent had ended.
  family.supervisor.fakes.answer(AgentWorkerService.method.cancel, () => ({}));
  const published = await family.lead();
  await published.final('op-1', 'Found it.');
  await family.ended(published.runId);
  const cancelled = await family.lead();
  await family.cancelled(cancelled.runId);
  const orders = family.supervisor.fakes
    .requests(AgentWorkerService.method.cancel)
    .filter(({ awaitEnd }) => !awaitEnd);
  expect(orders.map(({ runId, stopReason, answer }) => ({ runId, stopReason, answer }))).toEqual([
    { runId: published.runId, stopReason: 'success', answer: 'Found it.' },
    { runId: cancelled.runId, stopReason: 'cancelled', answer: '' },
  ]);
});
