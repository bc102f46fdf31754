import { expect, it } from 'vitest';
import { stepCounts } from './steps/step-counts.ts';

it('takes three RPCs, one model request and at most six commits per governed step (RT-1)', async () => {
  const { commits, hops, modelRequests } = await stepCounts(2, 22);
  expect(hops).toEqual({ Generate: 1, ReviewAction: 1, CallTool: 1 });
  expect(modelRequests).toBe(1);
  const { worker, ...services } = commits;
  expect(services).toEqual({ Generate: 2, ReviewAction: 1, CallTool: 2 });
  // The worker can record the step boundary in a later required commit, so it makes at most one commit per step.
  expect(worker).toBeLessThanOrEqual(1);
}, 60_000);
