import { newId } from '@writ/kernel';
import { followRun, readHuman } from '@writ/platform/console';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type HarnessOptions, StepsHarness } from './steps/steps-harness.ts';

const WARM_UP = 5;
const RUNS = 20;
/** How long the polls of an idle platform are observed: longer than the interval of the slowest one. */
const IDLE_MS = 6_000;
/** Rise of a budget that fails the test. */
const TOLERANCE = 1.05;

/** What a run takes. */
interface Cost {
  readonly commits: number;
  readonly statements: number;
  /** Queries that are built at each execution instead of prepared. */
  readonly built: number;
  readonly calls: number;
  readonly signs: number;
  readonly verifies: number;
}

/** What each run may take: the recorded figures of docs/explanation/performance.md. */
const BUDGETS = {
  'two-step run': { commits: 15, statements: 112, built: 0, calls: 11, signs: 7, verifies: 0 },
  handoff: { commits: 50, statements: 322, built: 61, calls: 30, signs: 13, verifies: 0 },
  escalation: { commits: 26, statements: 175, built: 22, calls: 14, signs: 12, verifies: 0 },
  refund: { commits: 25, statements: 174, built: 0, calls: 17, signs: 11, verifies: 0 },
} as const satisfies Record<string, Cost>;

const LEAD = {
  name: 'lead',
  kind: 'orchestrator',
  instructions: 'Have counter-1 count to 1.',
  model: { model: 'counting' },
  sub_agents: [{ name: 'counter-1' }],
};
const ASKER = {
  name: 'asker',
  kind: 'react',
  instructions: 'Count to 1.',
  model: { model: 'counting' },
  tools: ['ask'],
};

/** Starts a platform, and observes its polls before any run: no statement of a run counts as one of them. */
async function startIdle(options: HarnessOptions): Promise<StepsHarness> {
  const harness = await StepsHarness.start(options);
  onTestFinished(() => harness.close());
  await harness.learnPolls(IDLE_MS);
  return harness;
}

/** Starts a run of an agent, approves what it asks, and checks how it ended. */
async function complete(harness: StepsHarness, agent: string, model = ''): Promise<void> {
  const { client } = harness;
  const start = { requestId: newId('req'), agent, goal: 'Refund user 42.', model };
  const { run } = await client.runs.startRun(start);
  const human = readHuman('approve', () => {
    throw new Error('The answer is given.');
  });
  const ended = await followRun(client, run?.runId ?? '', human, {
    onEvent: () => undefined,
    onQuestion: () => undefined,
    onRefusedAnswer: () => undefined,
  });
  expect(ended.result?.stopReason).toBe('success');
}

/**
 * Compares the work of a run with its budget: polls and rounds of background loops are not counted, and the least of many
 * runs omits the commits that only a slow machine adds. Work of every run is also work of the least one.
 */
async function expectWithin(
  kind: keyof typeof BUDGETS,
  harness: StepsHarness,
  run: () => Promise<void>,
) {
  for (let n = 0; n < WARM_UP; n += 1) await run();
  const costs: { readonly cost: Cost; readonly byTable: Readonly<Record<string, number>> }[] = [];
  for (let n = 0; n < RUNS; n += 1) {
    const before = await taken(harness);
    await run();
    const after = await taken(harness);
    const cost = Object.fromEntries(
      Object.keys(BUDGETS[kind]).map((name) => {
        const key = name as keyof Cost;
        return [key, after.cost[key] - before.cost[key]];
      }),
    ) as unknown as Cost;
    const byTable = Object.fromEntries(
      Object.entries(after.byTable).map(([name, n]) => [name, n - (before.byTable[name] ?? 0)]),
    );
    costs.push({ cost, byTable });
  }
  const [least] = costs.toSorted((left, right) => left.cost.statements - right.cost.statements);
  const largest = Object.entries(least?.byTable ?? {})
    .toSorted(([, left], [, right]) => right - left)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${count} ${name}`);
  const figures = Object.fromEntries(
    Object.keys(BUDGETS[kind]).map((name) => {
      return [name, Math.min(...costs.map(({ cost }) => cost[name as keyof Cost]))];
    }),
  ) as unknown as Cost;
  console.log(kind, JSON.stringify(figures));
  for (const [name, budget] of Object.entries(BUDGETS[kind])) {
    expect(
      figures[name as keyof Cost],
      `${name} of a ${kind}:\n${largest.join('\n')}`,
    ).toBeLessThanOrEqual(budget * TOLERANCE);
  }
  // A count of nothing would be within every budget.
  const { commits, statements, calls, signs } = figures;
  expect(Math.min(commits, statements, calls, signs)).toBeGreaterThan(1);
}

async function taken(harness: StepsHarness) {
  const { work, hops } = await harness.counters();
  if (work === undefined) throw new Error('The platform does not count its work.');
  // Calls to the model provider have spans of a client, too, and tool lists are confirmed by time.
  const calls = Object.entries(hops)
    .filter(([name]) => name.startsWith('writ.') && !/ListTools|ReportReceipts/.test(name))
    .reduce((sum, [, count]) => sum + count, 0);
  return { cost: { ...work, calls }, byTable: { ...work.byTable } };
}

describe('commits, statements, calls and signatures of a run are no more than recorded', () => {
  const counted = { countHops: true, countWork: true } as const;

  it('in a two-step run, a handoff and an escalation (CO-1)', async () => {
    const options = { counts: [1], agents: [LEAD, ASKER], ...counted };
    const harness = await startIdle(options);
    await expectWithin('two-step run', harness, () => complete(harness, 'counter-1'));
    await expectWithin('handoff', harness, () => complete(harness, 'lead'));
    await expectWithin('escalation', harness, () => complete(harness, 'asker'));
  });

  it('in a refund with four steps (CO-1)', async () => {
    const harness = await startIdle({ counts: [], example: 'refund-desk', ...counted });
    const refund = () => complete(harness, 'refund-worker', 'sim-auto-1000');
    await expectWithin('refund', harness, refund);
  });
});
