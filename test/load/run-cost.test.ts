import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { StepsHarness } from './steps/steps-harness.ts';

const WARM_UP = 10;
const RUNS = 40;
/** Longer than the interval at which background work is written. */
const SETTLE_MS = 1_500;
/** Rise of a budget that fails the test. */
const TOLERANCE = 1.05;

/** What one two-step run (model, tool, model, answer) may take: the recorded figures of docs/explanation/performance.md. */
const BUDGET = {
  commits: 21,
  statements: 149,
  calls: 11.5,
  signs: 7,
  verifies: 0,
};

let harness: StepsHarness;
beforeAll(async () => {
  harness = await StepsHarness.start({ counts: [1], countHops: true, countWork: true });
});
afterAll(() => harness.close());

it('takes no more commits, statements, calls and signatures per two-step run than recorded (CO-1)', async () => {
  const run = async (times: number) => {
    for (let n = 0; n < times; n += 1) await harness.count(1, 'count');
    await sleep(SETTLE_MS);
  };
  await run(WARM_UP);
  const before = await taken();
  await run(RUNS);
  const after = await taken();
  const perRun = (read: (counters: typeof after) => number) => (read(after) - read(before)) / RUNS;
  const cost = {
    commits: perRun(({ work }) => work.commits),
    statements: perRun(({ work }) => work.statements),
    calls: perRun(({ hops }) => callsBetweenServices(hops)),
    signs: perRun(({ work }) => work.signs),
    verifies: perRun(({ work }) => work.verifies),
  };
  const largest = Object.keys(after.work.byTable)
    .map((name) => [name, perRun(({ work }) => work.byTable[name] ?? 0)] as const)
    .toSorted(([, left], [, right]) => right - left)
    .map(([name, count]) => `${count.toFixed(2)} ${name}`);
  console.log(JSON.stringify(cost));
  for (const [kind, budget] of Object.entries(BUDGET)) {
    const taken = cost[kind as keyof typeof BUDGET];
    expect(taken, `${kind} per run; statements:\n${largest.join('\n')}`).toBeLessThanOrEqual(
      budget * TOLERANCE,
    );
  }
  // A count of nothing would be within every budget.
  expect(Math.min(cost.commits, cost.statements, cost.calls, cost.signs)).toBeGreaterThan(1);
});

/** Calls to the model provider have spans of a client, too. */
function callsBetweenServices(hops: Readonly<Record<string, number>>): number {
  const calls = Object.entries(hops).filter(([name]) => name.startsWith('writ.'));
  return calls.reduce((sum, [, count]) => sum + count, 0);
}

async function taken() {
  const { work, hops } = await harness.counters();
  if (work === undefined) throw new Error('The platform does not count its work.');
  return { work, hops };
}
