import { newId } from '@writ/kernel';
import { followRun, readHuman } from '@writ/platform/terminal';
import { type HarnessOptions, StepsHarness } from './steps/steps-harness.ts';

/** How long the polls of an idle platform are observed: longer than the longest poll interval. */
const IDLE_MS = 6_000;

/** The cost of a run. */
export interface Cost {
  readonly commits: number;
  readonly statements: number;
  /** Queries that are built at each execution instead of prepared. */
  readonly built: number;
  readonly calls: number;
  readonly signs: number;
  readonly verifies: number;
}

/** The counted cost of a kind of run. */
export interface CountedCost {
  /** The lowest value of every figure. */
  readonly least: Cost;
  /** Statements by table of the run with the fewest statements, in descending order. */
  readonly byTable: readonly string[];
}

/**
 * Starts a platform that counts its work, and records its polls before any run, so that no statement of a run is
 * mistaken for a poll.
 */
export async function startCounted(
  options: Omit<HarnessOptions, 'countHops' | 'countWork'>,
): Promise<StepsHarness> {
  const harness = await StepsHarness.start({ ...options, countHops: true, countWork: true });
  try {
    await harness.learnPolls(IDLE_MS);
    return harness;
  } catch (error) {
    await harness.close();
    throw error;
  }
}

/** Starts a run of an agent, approves every escalated action, and resolves with the stop reason of the run. */
export async function completeRun(
  { client }: StepsHarness,
  agent: string,
  model = '',
): Promise<string | undefined> {
  const start = { requestId: newId('req'), agent, goal: 'Refund user 42.', model };
  const { run } = await client.runs.startRun(start);
  const human = readHuman('approve', () => {
    throw new Error('The run must not ask at a terminal.');
  });
  const ended = await followRun(client, run?.runId ?? '', human, {
    onEvent: () => undefined,
    onQuestion: () => undefined,
    onRefusedAnswer: () => undefined,
  });
  return ended.result?.stopReason;
}

/**
 * Counts the cost of a run on a platform of {@link startCounted} (CO-1), without polls and rounds of background loops.
 * Uses the lowest value of many runs, which omits the commits that only a slow machine adds but includes all work that
 * every run does.
 */
export async function countCost(
  harness: StepsHarness,
  { runs, warmUp }: { readonly runs: number; readonly warmUp: number },
  run: () => Promise<unknown>,
): Promise<CountedCost> {
  for (let n = 0; n < warmUp; n += 1) await run();
  const counted: CountedWork[] = [];
  for (let n = 0; n < runs; n += 1) {
    const before = await readWork(harness);
    await run();
    const after = await readWork(harness);
    counted.push({
      cost: difference(before.cost, after.cost),
      byTable: difference(before.byTable, after.byTable),
    });
  }
  const [fewest] = counted.toSorted((left, right) => left.cost.statements - right.cost.statements);
  const byTable = Object.entries(fewest?.byTable ?? {})
    .toSorted(([, left], [, right]) => right - left)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${count} ${name}`);
  const least = (name: keyof Cost): number => Math.min(...counted.map(({ cost }) => cost[name]));
  return {
    least: {
      commits: least('commits'),
      statements: least('statements'),
      built: least('built'),
      calls: least('calls'),
      signs: least('signs'),
      verifies: least('verifies'),
    },
    byTable,
  };
}

/** The work of a platform, since its start or during a run. */
interface CountedWork {
  readonly cost: Cost;
  readonly byTable: Readonly<Record<string, number>>;
}

async function readWork(harness: StepsHarness): Promise<CountedWork> {
  const { work, hops } = await harness.counters();
  if (work === undefined) throw new Error('The platform does not count its work.');
  // Excludes calls to the model provider, which also have client spans, and ListTools and ReportReceipts, whose number
  // depends on time.
  const calls = Object.entries(hops)
    .filter(([name]) => name.startsWith('writ.') && !/ListTools|ReportReceipts/.test(name))
    .reduce((sum, [, count]) => sum + count, 0);
  const { commits, statements, built, signs, verifies, byTable } = work;
  return { cost: { commits, statements, built, calls, signs, verifies }, byTable };
}

function difference<T extends object>(before: T, after: T): T {
  const earlier = new Map<string, number>(Object.entries(before));
  const entries = Object.entries(after) as [string, number][];
  return Object.fromEntries(entries.map(([name, n]) => [name, n - (earlier.get(name) ?? 0)])) as T;
}
