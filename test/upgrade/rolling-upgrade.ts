import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { readLedger } from '@writ/example-refund-desk/ledger';
import { CORE_SERVICES } from '@writ/identity';
import { newId } from '@writ/kernel';
import { type DistributedPlatform, startDistributedPlatform } from '@writ/testing/distributed';

/** How long a run may take to reach a state on a busy machine, in milliseconds. */
const TIMEOUT_MS = 120_000;
const POLL_MS = 100;

/** Options of {@link rollingUpgrade}. */
export interface RollingUpgradeOptions {
  /** Source tree that all replicas run at first. */
  readonly from: string;
  /** Source tree that they run afterwards. */
  readonly to: string;
  /** Runs that wait for a person during the whole upgrade. */
  readonly waiting: number;
  /** Runs that start while each replica is replaced. */
  readonly during: number;
  readonly log?: (line: string) => void;
}

/** Result of {@link rollingUpgrade}. */
export interface RollingUpgrade {
  /** Number of runs. */
  readonly runs: number;
  /**
   * One sentence for each run that did not succeed with exactly one refund, and one for each crash of a replica; empty
   * when there was neither.
   */
  readonly problems: readonly string[];
}

/**
 * Replaces one replica after another of a platform with two replicas of each service, on PostgreSQL and NATS, while
 * runs begin, continue and wait for a person (BD-6, SYS-5). During the replacement, both builds run side by side.
 */
export async function rollingUpgrade(options: RollingUpgradeOptions): Promise<RollingUpgrade> {
  const { from, to, waiting, during, log = () => undefined } = options;
  const env = { WRIT_WORKER_LEASE_TTL: '2s' };
  const platform = await startDistributedPlatform({ build: from, env });
  try {
    const waitingRuns: string[] = [];
    for (let run = 0; run < waiting; run += 1)
      waitingRuns.push(await start(platform, 'escalate-1200'));
    for (const runId of waitingRuns) await untilSuspended(platform, runId);
    log(`${waiting} runs wait for a person`);
    const runIds = [...waitingRuns];
    const replicas = CORE_SERVICES.flatMap((service) =>
      platform.replicas.filter((replica) => replica.service === service),
    );
    for (const replica of replicas) {
      const started = Array.from({ length: during }, () => start(platform, 'auto-1000'));
      runIds.push(...(await Promise.all(started)));
      const code = await replica.stop();
      if (code !== 0) log(`${replica.name} ended with ${code}`);
      await replica.start(to);
      log(`${replica.name} runs the new build; ${runIds.length} runs started`);
    }
    await Promise.all(waitingRuns.map((runId) => approve(platform, runId)));
    const outcomes = await Promise.all(runIds.map((runId) => problemOf(platform, runId)));
    const crashes = platform.replicas.flatMap((replica) => replica.crashes);
    return { runs: runIds.length, problems: [...outcomes.filter((one) => one !== ''), ...crashes] };
  } finally {
    await platform.close();
  }
}

/** Starts a run at any supervisor that accepts it, because one of them may be restarting. */
async function start({ clients }: DistributedPlatform, script: string): Promise<string> {
  const requestId = newId('req');
  const runId = await eventually(async () => {
    for (const client of clients) {
      const request = {
        requestId,
        agent: 'refund-worker',
        goal: 'Refund it.',
        model: `sim-${script}`,
      };
      const { run } = await client.runs.startRun(request).catch(() => ({ run: undefined }));
      if (run !== undefined) return run.runId;
    }
    return undefined;
  });
  if (runId === undefined) throw new Error('No supervisor accepts a run.');
  return runId;
}

async function runOf({ clients }: DistributedPlatform, runId: string) {
  for (const client of clients) {
    const { run } = await client.runs.getRun({ runId }).catch(() => ({ run: undefined }));
    if (run !== undefined) return run;
  }
  return undefined;
}

async function untilSuspended(platform: DistributedPlatform, runId: string): Promise<void> {
  const isSuspended = await eventually(async () =>
    (await runOf(platform, runId))?.state === RunState.SUSPENDED ? true : undefined,
  );
  if (isSuspended !== true) throw new Error(`${runId} does not wait for a person.`);
}

async function approve({ client }: DistributedPlatform, runId: string): Promise<void> {
  const { approvals } = await client.approvals.listApprovals({ runId });
  for (const { approvalId, action } of approvals) {
    const { kind } = action ?? {};
    const args = JSON.parse(kind?.case === 'tool' ? kind.value.argumentsJson : '{}');
    const answer = {
      case: 'approveWithEdits',
      value: { argumentsJson: JSON.stringify({ ...args, amount_usd: 800 }) },
    } as const;
    await client.approvals.decideApproval({ requestId: newId('req'), approvalId, answer });
  }
}

/** Why a run did not end with exactly one refund; empty when it did. */
async function problemOf(platform: DistributedPlatform, runId: string): Promise<string> {
  const result = await eventually(async () => (await runOf(platform, runId))?.result);
  if (result === undefined) {
    const run = await runOf(platform, runId);
    const [state] = Object.entries(RunState).find(([, value]) => value === run?.state) ?? [];
    return `${runId} is ${state}: ${run?.waitingDetail}`;
  }
  const refunds = readLedger(platform.dataDir).refunds.filter(({ run_id: id }) => id === runId);
  if (result.stopReason === 'success' && refunds.length === 1) return '';
  return `${runId} ended with ${result.stopReason} (${result.detail}) after ${refunds.length} refunds.`;
}

/** Retries until `ask` returns a value; returns undefined after the timeout. */
async function eventually<T>(ask: () => Promise<T | undefined>): Promise<T | undefined> {
  for (const until = Date.now() + TIMEOUT_MS; ; ) {
    const answer = await ask();
    if (answer !== undefined || Date.now() > until) return answer;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
