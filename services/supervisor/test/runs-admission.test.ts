import { createWritClient } from '@writ/client';
import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RefundHarness } from './refund-harness.ts';
import { type PersonName, SupervisorUnderTest } from './supervisor-under-test.ts';

/** Number of starts that the supervisor executes at the same time. */
const MAX_STARTING = 16;

describe('starts under overload', () => {
  let supervisor: SupervisorUnderTest;
  let unblockDeliveries: () => void;
  /** A run that was started before the overload. */
  let running: string;
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start({
      config: { maxQueuedRunsPerTenant: 3, maxQueuedRuns: 4 },
    });
    running = await start('anna', 'running');
    await vi.waitFor(async () => expect(await stateOf(running)).toBe(RunState.RUNNING));
    const { promise, resolve } = Promise.withResolvers<void>();
    unblockDeliveries = resolve;
    const { deliver } = AgentWorkerService.method;
    // Blocks more calls than there are deliveries, because a call that times out is repeated.
    supervisor.fakes.fail(deliver, ...Array.from({ length: 1_000 }, () => () => promise));
    for (let number = 0; number < MAX_STARTING; number += 1) {
      await start('anna', `starting-${number}`);
    }
    await supervisor.fakes.called(deliver, 1 + MAX_STARTING);
  });
  afterEach(async () => {
    unblockDeliveries();
    await supervisor.close();
  });

  async function start(who: PersonName, requestId: string): Promise<string> {
    const { run } = await supervisor
      .runs(who)
      .startRun({ requestId, agent: 'worker', goal: 'Go.' });
    return run?.runId ?? '';
  }

  async function stateOf(runId: string): Promise<RunState | undefined> {
    return (await supervisor.runs().getRun({ runId })).run?.state;
  }

  it('wait in a queue with a limit per tenant and in total, and are rejected when it is full (BD-5)', async () => {
    const waiting: string[] = [];
    for (let number = 0; number < 3; number += 1) waiting.push(await start('anna', `w-${number}`));
    await expect(start('anna', 'w-3')).rejects.toMatchObject({
      kind: 'resource_exhausted',
      reason: 'START_QUEUE_FULL',
      metadata: {
        setting: 'WRIT_TENANT_MAX_QUEUED_RUNS',
        limit: '3',
        retry_after_ms: expect.stringMatching(/^\d+$/),
      },
    });
    // A repeated request is answered, and another tenant has its own limit.
    expect(await start('anna', 'w-0')).toBe(waiting[0]);
    await start('eve', 'e-0');
    await expect(start('eve', 'e-1')).rejects.toMatchObject({
      metadata: { setting: 'WRIT_MAX_QUEUED_RUNS', limit: '4' },
    });
    for (const runId of waiting) expect(await stateOf(runId)).toBe(RunState.PENDING);
    unblockDeliveries();
    for (const runId of waiting) {
      await vi.waitFor(async () => expect(await stateOf(runId)).toBe(RunState.RUNNING));
    }
    await vi.waitFor(() => start('anna', 'w-3'));
  });

  it('are repeated by the client library until they are admitted (BD-5)', async () => {
    for (let number = 0; number < 3; number += 1) await start('anna', `w-${number}`);
    const options = {
      baseUrl: `http://${supervisor.service.edgeAddress}`,
      apiKey: supervisor.apiKey('anna'),
    };
    const client = createWritClient(options);
    const impatient = createWritClient({ ...options, retryStarts: false });
    const request = { requestId: 'c-0', agent: 'worker', goal: 'Go.' };
    const full = { reason: 'START_QUEUE_FULL' };
    await expect(impatient.runs.startRun(request)).rejects.toMatchObject(full);
    const started = client.runs.startRun(request);
    const watched = client.runs.runAgent({ start: { ...request, requestId: 'c-1' } });
    const first = watched[Symbol.asyncIterator]().next();
    await expect(impatient.runs.startRun(request)).rejects.toMatchObject(full);
    unblockDeliveries();
    expect((await started).run?.runId).toBe(await start('anna', 'c-0'));
    expect((await first).value?.runId).toBe(await start('anna', 'c-1'));
  });

  it('do not delay the end of a run, the cancellation of a waiting run, or a halt (BD-5)', async () => {
    const waiting = await start('anna', 'waiting');
    for (const runId of [running, waiting]) {
      await supervisor.runs().cancelRun({ requestId: `cancel-${runId}`, runId });
      await vi.waitFor(async () => expect(await stateOf(runId)).toBe(RunState.CANCELLED));
    }
    const control = supervisor.as('anna', ControlService);
    const scope = { kind: { case: 'tenant', value: 'acme' } } as const;
    const { halt } = await control.halt({ requestId: 'h-1', scope, reason: 'Stop.' });
    await control.resume({ requestId: 'r-1', haltId: halt?.haltId ?? '' });
  });

  it('are admitted from the store after a restart (BD-5)', async () => {
    const waiting = await start('anna', 'waiting');
    unblockDeliveries();
    await supervisor.stop();
    await supervisor.restart();
    await vi.waitFor(async () => expect(await stateOf(waiting)).toBe(RunState.RUNNING));
  });
});

describe('the run quota', () => {
  it('is enforced in the transaction that starts a run, and its error names setting and limit (SYS-3)', async () => {
    const harness = await RefundHarness.start({ config: { maxRunsPerTenant: 2 } });
    try {
      const start = (requestId: string, person: 'anna' | 'eve' = 'anna') =>
        harness.supervisor
          .runs(person)
          .startRun({ requestId, agent: 'refund-worker', goal: 'Do it.' });
      const outcomes = await Promise.allSettled(['a', 'b', 'c', 'd'].map((id) => start(id)));
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
      await expect(start('e')).rejects.toMatchObject({
        kind: 'resource_exhausted',
        reason: 'RUN_QUOTA_EXCEEDED',
        metadata: { setting: 'WRIT_TENANT_MAX_RUNS', used: '2', limit: '2' },
      });
      await start('f', 'eve');
    } finally {
      await harness.close();
    }
  });
});
