import type { MessageInitShape } from '@bufbuild/protobuf';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { BudgetLevel, type LevelBalanceSchema } from '@writ/contracts/writ/meter/v1/tab_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { UnavailableError } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

describe('SetCaps', () => {
  let supervisor: SupervisorUnderTest;
  /** Whether the supervisor gets the answers of the meter. */
  let isAnswered: boolean;
  /** Awaited by the meter between a change of the caps and its answer. */
  let delayOf: (requestId: string) => Promise<void>;
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start();
    isAnswered = true;
    delayOf = () => Promise.resolve();
    const known = new Set<string>();
    let limit: MessageInitShape<typeof LevelBalanceSchema>['limit'];
    supervisor.fakes.answer(ExecutionMeterService.method.setCaps, async ({ requestId, caps }) => {
      if (!known.has(requestId)) limit = caps;
      known.add(requestId);
      const balance = { level: BudgetLevel.RUN, ...(limit && { limit }) };
      await delayOf(requestId);
      if (!isAnswered) throw new UnavailableError('NOT_STARTED', 'The answer is lost.');
      return { balance };
    });
  });
  afterEach(() => supervisor.close());

  it('records the caps that the meter enforces when an earlier request is repeated (EM-3)', async () => {
    const { read, change, usage } = await startRun();
    const first = { ...change, requestId: 'first', caps: { maxTurns: 10n } };
    // The meter enforces these caps, but the supervisor does not receive its answer.
    isAnswered = false;
    await expect(usage.setCaps(first)).rejects.toMatchObject({ kind: 'unavailable' });
    isAnswered = true;
    const second = { ...change, requestId: 'second', caps: { maxTurns: 3n, maxTokens: 500n } };
    await usage.setCaps(second);
    expect((await read())?.runBudget).toMatchObject(second.caps);
    const { balance } = await usage.setCaps(first);
    expect(balance?.limit).toMatchObject(second.caps);
    expect((await read())?.runBudget).toMatchObject(second.caps);
  });

  it('records the caps that the meter enforces when an earlier request is recorded last (EM-3)', async () => {
    const { read, change, usage } = await startRun();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
    let delayed: string | undefined;
    delayOf = async (requestId) => {
      delayed ??= requestId;
      reach();
      if (requestId === delayed) await released;
    };
    const first = usage.setCaps({ ...change, requestId: 'first', caps: { maxTurns: 10n } });
    await reached;
    const caps = { maxTurns: 3n };
    await usage.setCaps({ ...change, requestId: 'second', caps });
    release();
    expect((await first).balance?.limit).toMatchObject(caps);
    expect((await read())?.runBudget).toMatchObject(caps);
  });

  /** Starts a run; returns functions and fields for requests that set its caps. */
  async function startRun() {
    const request = { requestId: 'r-1', agent: 'worker', goal: 'Go.' };
    const { run } = await supervisor.runs().startRun(request);
    const { runId } = run ?? { runId: '' };
    const read = async () => (await supervisor.runs().getRun({ runId })).run;
    await vi.waitFor(async () => expect((await read())?.state).toBe(RunState.RUNNING));
    const usage = supervisor.as('anna', UsageService);
    return { read, usage, change: { level: BudgetLevel.RUN, runId } };
  }
});
