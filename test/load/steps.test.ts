import { expect, it } from 'vitest';
import { stepCounts } from './steps/step-counts.ts';

it('takes three hops and six commits for a governed step (RT-1)', async () => {
  const { commits, beside, hops, questions } = await stepCounts(2, 22);
  expect(hops).toEqual({ Generate: 1, ReviewAction: 1, CallTool: 1 });
  expect(questions).toBe(1);
  // What time alone brings, on a slow machine more of it in each step, may differ between two runs.
  expect(commits).toBeGreaterThan(5.8);
  expect(commits - beside).toBeLessThan(6.3);
}, 60_000);
