import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { admitEpoch } from './epochs.ts';

describe('epochs', () => {
  it('admits exactly the epochs not below the highest one seen, in any order of calls (RT-2)', () => {
    fc.assert(
      fc.property(fc.array(fc.bigInt({ min: 0n, max: 9n })), (epochs) => {
        let seen: bigint | undefined;
        let highest = -1n;
        for (const epoch of epochs) {
          if (epoch < highest) {
            expect(() => admitEpoch(seen, epoch)).toThrow(`Epoch ${epoch} is stale`);
          } else {
            seen = admitEpoch(seen, epoch);
            highest = epoch;
          }
          expect(seen).toBe(highest);
        }
      }),
    );
  });
});
