import { describe, expect, it, onTestFinished } from 'vitest';
import { type Cost, completeRun, countCost, startCounted } from './run-cost.ts';
import type { HarnessOptions, StepsHarness } from './steps/steps-harness.ts';

const WARM_UP = 5;
const RUNS = 20;
/** Maximum ratio of a figure to its budget. */
const TOLERANCE = 1.05;

/** Maximum figures of each run, as recorded in docs/explanation/performance.md. */
const BUDGETS = {
  'two-step run': { commits: 15, statements: 114, built: 0, calls: 11, signs: 7, verifies: 0 },
  handoff: { commits: 50, statements: 328, built: 61, calls: 30, signs: 13, verifies: 0 },
  escalation: { commits: 26, statements: 177, built: 22, calls: 14, signs: 12, verifies: 0 },
  refund: { commits: 25, statements: 176, built: 0, calls: 17, signs: 11, verifies: 0 },
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

/** Counts many runs, each of which must succeed, and checks the lowest value of every figure. */
async function expectWithin(
  kind: keyof typeof BUDGETS,
  harness: StepsHarness,
  [agent, model]: readonly [agent: string, model?: string],
) {
  const { least, byTable } = await countCost(harness, { runs: RUNS, warmUp: WARM_UP }, async () => {
    expect(await completeRun(harness, agent, model)).toBe('success');
  });
  console.log(kind, JSON.stringify(least));
  for (const [name, budget] of Object.entries(BUDGETS[kind])) {
    expect(
      least[name as keyof Cost],
      `${name} of a ${kind}:\n${byTable.join('\n')}`,
    ).toBeLessThanOrEqual(budget * TOLERANCE);
  }
  // A counter that counts nothing would pass every budget.
  const { commits, statements, calls, signs } = least;
  expect(Math.min(commits, statements, calls, signs)).toBeGreaterThan(1);
}

async function startHarness(options: HarnessOptions): Promise<StepsHarness> {
  const harness = await startCounted(options);
  onTestFinished(() => harness.close());
  return harness;
}

describe('commits, statements, calls and signatures of a run are within the budgets', () => {
  it('in a two-step run, a handoff and an escalation (CO-1)', async () => {
    const harness = await startHarness({ counts: [1], agents: [LEAD, ASKER] });
    await expectWithin('two-step run', harness, ['counter-1']);
    await expectWithin('handoff', harness, ['lead']);
    await expectWithin('escalation', harness, ['asker']);
  });

  it('in a refund with four steps (CO-1)', async () => {
    const harness = await startHarness({ counts: [], example: 'refund-desk' });
    await expectWithin('refund', harness, ['refund-worker', 'sim-auto-1000']);
  });
});
