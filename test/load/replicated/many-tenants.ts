import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createWritClient, type WritClient } from '@writ/client';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { API_KEYS_FILE, openApiKeys } from '@writ/identity';
import { isWritError, newId } from '@writ/kernel';
import { type DistributedPlatform, startDistributedPlatform } from '@writ/testing/distributed';
import { median } from '../../bench/measure.ts';
import { until } from '../../e2e/scripted/until.ts';
import { untilAdmitted } from '../admitted.ts';
import { twoStepExample } from '../two-step-example.ts';

const IN_FLIGHT = 16;
const HOT = 'hot';
const STEPS_PER_RUN = 2;
const POLL_MS = 100;
/** Interval between two GetRun calls of a run; the calls of a shorter interval would be a large part of the load. */
const END_POLL_MS = 1_000;
/** Start rate of all other tenants together, and of the hot tenant, divided by the measured throughput. */
const SHARE = 1 / 3;
/** Maximum slowdown of the other tenants: the ratio between their median step times with and without a hot tenant. */
const MAX_SLOWDOWN = 1.5;

/** Options of the test. */
export interface ManyTenantsOptions {
  readonly tenants: number;
  readonly runsPerTenant: number;
  /** Alternating measurements without and with a hot tenant. */
  readonly rounds: number;
  readonly roundMs: number;
}

/**
 * Makes two-step runs of many tenants on two replicas of every service. Asserts that every run ends with an answer, and
 * that a hot tenant with a cap slows the steps of the other tenants at most by the factor {@link MAX_SLOWDOWN} (SYS-5,
 * EM-3).
 */
export async function manyTenants(options: ManyTenantsOptions) {
  const { tenants, runsPerTenant } = options;
  const platform = await startDistributedPlatform({ example: twoStepExample() });
  try {
    const names = Array.from({ length: tenants }, (_, number) => `tenant-${number}`);
    const clients = await clientsOf(platform, [...names, HOT]);
    const client = (tenant: string): WritClient => {
      const known = clients.get(tenant);
      assert.ok(known, tenant);
      return known;
    };
    const queue = Array.from({ length: runsPerTenant }, () => names).flat();
    const runs = queue.length;
    const startedAt = performance.now();
    await Promise.all(
      Array.from({ length: IN_FLIGHT }, async () => {
        for (let tenant = queue.pop(); tenant !== undefined; tenant = queue.pop()) {
          await runToEnd(client(tenant));
        }
      }),
    );
    const seconds = (performance.now() - startedAt) / 1_000;
    await assertAnswered(platform, { tenants, runsPerTenant });
    const perSecond = runs / seconds;
    const slowdown = await hotTenant(
      platform,
      { names, client, perSecond: SHARE * perSecond },
      options,
    );
    return {
      'runs that ended': runs,
      tenants,
      'runs per second': perSecond.toFixed(1),
      'median step without and with the hot tenant, ms': slowdown.steps.join(', '),
      'median slowdown by the hot tenant': slowdown.ratio.toFixed(2),
      'requests repeated because of STORE_BUSY': busy,
    };
  } finally {
    await platform.close();
  }
}

/** Tenants of {@link hotTenant}; `perSecond` is the start rate of the hot tenant, and also of the others together. */
interface HotTenantLoad {
  readonly names: readonly string[];
  readonly client: (tenant: string) => WritClient;
  readonly perSecond: number;
}

/** Measures the steps of the other tenants alternately without and with a hot tenant. */
async function hotTenant(
  platform: DistributedPlatform,
  { names, client, perSecond }: HotTenantLoad,
  { rounds, roundMs }: ManyTenantsOptions,
) {
  await client(HOT).usage.setCaps({
    requestId: 'caps-hot',
    level: BudgetLevel.TENANT_DAY,
    caps: { maxTokens: 1_000_000_000n },
  });
  let next = 0;
  const others = (): WritClient => {
    next += 1;
    return client(names[next % names.length] ?? '');
  };
  const stepMs = async (isHot: boolean): Promise<number> => {
    const from = new Date();
    await Promise.all([
      startRuns(others, perSecond, roundMs),
      isHot ? startRuns(() => client(HOT), perSecond, roundMs) : undefined,
    ]);
    await untilAllRunsEnded(platform);
    return await medianStep(platform, from);
  };
  await stepMs(true);
  const steps: string[] = [];
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const alone = await stepMs(false);
    const beside = await stepMs(true);
    steps.push(`${alone.toFixed(0)} and ${beside.toFixed(0)}`);
    ratios.push(beside / alone);
  }
  const ratio = median(ratios);
  assert.ok(ratio <= MAX_SLOWDOWN, `a hot tenant slows others ${ratio.toFixed(2)} times: ${steps}`);
  return { ratio, steps };
}

/** Returns one client with a separate key for each tenant, distributed over the supervisors. */
async function clientsOf({ dataDir, edgeUrls }: DistributedPlatform, tenants: readonly string[]) {
  const keys = openApiKeys({ file: join(dataDir, API_KEYS_FILE) });
  const clients = new Map<string, WritClient>();
  for (const [number, tenant] of tenants.entries()) {
    const apiKey = await keys.create({ subject: 'load', tenant, roles: ['caller', 'operator'] });
    const baseUrl = edgeUrls[number % edgeUrls.length] ?? '';
    clients.set(tenant, createWritClient({ baseUrl, apiKey }));
  }
  return clients;
}

async function startRun({ runs }: WritClient): Promise<string> {
  const request = { requestId: newId('req'), agent: 'refund-worker', goal: 'Do it.' };
  const { run } = await untilServed(() => untilAdmitted(() => runs.startRun(request)));
  assert.ok(run);
  return run.runId;
}

/** Repeats an idempotent request while the database is too busy for it. */
async function untilServed<T>(request: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (!isWritError(error) || error.reason !== 'STORE_BUSY') throw error;
      busy += 1;
      await pause(POLL_MS);
    }
  }
}

/** Requests that were repeated because of STORE_BUSY. */
let busy = 0;

async function runToEnd(client: WritClient): Promise<void> {
  const runId = await startRun(client);
  for (let state: RunState = RunState.PENDING; state <= RunState.ENDING; ) {
    await pause(END_POLL_MS);
    const { run } = await untilServed(() => client.runs.getRun({ runId }));
    state = run?.state ?? state;
  }
}

/** Starts runs at a rate, whether earlier ones have ended or not. */
async function startRuns(
  client: () => WritClient,
  perSecond: number,
  forMs: number,
): Promise<void> {
  const starts: Promise<string>[] = [];
  const startedAt = performance.now();
  for (let number = 0; number < (perSecond * forMs) / 1_000; number += 1) {
    await pause(Math.max(0, startedAt + (number * 1_000) / perSecond - performance.now()));
    starts.push(startRun(client()));
  }
  await Promise.all(starts);
}

async function untilAllRunsEnded(platform: DistributedPlatform): Promise<void> {
  await until(
    'every run to end',
    async () => {
      const open = await platform.rows(
        'supervisor',
        'select 1 from runs where ended_at is null limit 1',
      );
      return open.length === 0 || undefined;
    },
    POLL_MS,
  );
}

/** Asserts that every run of each tenant has ended with an answer. */
async function assertAnswered(
  platform: DistributedPlatform,
  { tenants, runsPerTenant }: Pick<ManyTenantsOptions, 'tenants' | 'runsPerTenant'>,
): Promise<void> {
  await untilAllRunsEnded(platform);
  const counts = await platform.rows(
    'supervisor',
    `select tenant, count(*)::int as runs, count(*) filter (where state = 'COMPLETED')::int as answered
     from runs group by tenant`,
  );
  const expected = { runs: runsPerTenant, answered: runsPerTenant };
  for (const { tenant, ...count } of counts) assert.deepEqual(count, expected, String(tenant));
  assert.equal(counts.length, tenants, 'tenants with runs');
}

/**
 * Returns the median duration of the runs that the other tenants started since `from`, divided by the number of steps
 * of a run, in milliseconds.
 */
async function medianStep(platform: DistributedPlatform, from: Date): Promise<number> {
  const [row] = await platform.rows(
    'supervisor',
    `select percentile_cont(0.5) within group (order by extract(epoch from ended_at - created_at)) as run
     from runs where tenant <> $1 and created_at >= $2`,
    [HOT, from],
  );
  return (Number(row?.run) * 1_000) / STEPS_PER_RUN;
}
