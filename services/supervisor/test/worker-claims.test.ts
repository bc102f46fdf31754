import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

const START = { requestId: 'req-1', agent: 'worker', goal: 'Do it.' };

describe('the claims of a worker', () => {
  let supervisor: SupervisorUnderTest;
  let runId: string;
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start();
    const { run } = await supervisor.runs().startRun(START);
    runId = run?.runId ?? '';
    await supervisor.fakes.called(AgentWorkerService.method.deliver);
  });
  afterEach(() => supervisor.close());

  async function resultOf(stopReason: string) {
    const { supervision, options } = await supervisor.worker();
    const claim = { requestId: 'o-1', stopReason, phase: 'worker', detail: 'Claimed.' } as const;
    await supervision.reportOutcome(claim, options);
    await Array.fromAsync(supervisor.runs().watchRun({ runId }));
    return (await supervisor.runs().getRun({ runId })).run?.result;
  }

  it('are marked as unverified when only the worker reports the ending, and contain its detail (SV-7)', async () => {
    expect(await resultOf('stuck')).toMatchObject({
      stopReason: 'stuck',
      phase: 'worker',
      unverified: true,
      workerDetail: 'Claimed.',
    });
  });

  it('are verified for a model failure that the closed tab confirms (SV-7)', async () => {
    supervisor.fakes.answer(ExecutionMeterService.method.closeTab, () => ({
      tab: { failures: [{ stopReason: 'llm_timeout', count: 1n, lastCallId: 'op-1' }] },
    }));
    expect(await resultOf('llm_timeout')).toMatchObject({ unverified: false });
  });

  it('are unverified for a model failure that the closed tab does not confirm', async () => {
    expect(await resultOf('llm_timeout')).toMatchObject({ unverified: true });
  });

  it('are rejected when the stop reason cannot be reported by a worker or is unknown', async () => {
    const { supervision, options } = await supervisor.worker();
    for (const stopReason of ['success', 'paused', 'cancelled', 'halted']) {
      await expect(
        supervision.reportOutcome({ requestId: 'o', stopReason, phase: 'worker' }, options),
      ).rejects.toMatchObject({ reason: 'OUTCOME_NOT_REPORTABLE' });
    }
    await expect(
      supervision.reportOutcome({ requestId: 'o', stopReason: 'bored', phase: 'worker' }, options),
    ).rejects.toMatchObject({ reason: 'INVALID_STOP_REASON' });
  });

  it('are rejected from a worker that lost its lease (RT-2)', async () => {
    const { supervision, options } = await supervisor.worker();
    await supervision.getManifest({}, { ...options, epoch: 3n });
    await expect(
      supervision.reportOutcome(
        { requestId: 'o', stopReason: 'stuck', phase: 'worker' },
        { ...options, epoch: 2n },
      ),
    ).rejects.toMatchObject({ reason: 'STALE_EPOCH' });
  });

  it('permit an agent to read its own definition but not the definition of an unrelated agent (SUP-9)', async () => {
    const { supervision, options } = await supervisor.worker();
    const { manifest } = await supervision.getManifest({}, options);
    expect(manifest).toEqual(supervisor.fakes.deliveries[0]?.manifest);
    await expect(supervision.getManifest({ name: 'helper' }, options)).rejects.toMatchObject({
      kind: 'not_found',
    });
  });

  it('permit the refresh of tokens until the agent ends', async () => {
    const { supervision, options } = await supervisor.worker();
    const { credentials } = await supervision.refreshTokens({}, options);
    const fresh = { ...options, agentToken: credentials?.supervisorToken ?? '' };
    await expect(supervision.getManifest({}, fresh)).resolves.toBeDefined();
    await supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    await expect(supervision.refreshTokens({}, fresh)).rejects.toMatchObject({
      reason: 'RUN_ENDED',
      metadata: { stop_reason: 'cancelled' },
    });
  });
});
