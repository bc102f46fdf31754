import { expect, it } from 'vitest';
import { overload } from './overload.ts';

// `npm run load -- overload` overloads for 30 s and checks the p99 of accepted runs.
it('ends every accepted run, rejects starts and answers halts under load far above capacity (BD-5, BD-2)', async () => {
  const { accepted, ended, rejected, rejectedWithDelay, failures, halts } = await overload({
    unloadedRuns: 5,
    capacityMs: 2_000,
    overloadMs: 4_000,
    // The capacity is measured only briefly, so the measured value may be half of the actual capacity.
    times: 5,
    env: { WRIT_TENANT_MAX_QUEUED_RUNS: '12' },
  });
  expect(failures).toEqual([]);
  expect(accepted).toBeGreaterThan(0);
  expect(ended).toBe(accepted);
  expect(rejected).toBeGreaterThan(0);
  expect(rejectedWithDelay).toBe(rejected);
  expect(halts).toBeGreaterThan(0);
}, 120_000);
