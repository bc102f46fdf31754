import { LEAK_QUERIES } from '../../load/leaks.ts';
import type { Invariant } from './invariant.ts';

export const noLeaks: Invariant = {
  holds: 'no slot, pool, reservation, tab, order or agent outlives its run (SB-6, SB-8, SUP-8)',
  violations: async ({ platform }) => {
    const found = LEAK_QUERIES.map(async ([what, service, query]) => {
      const rows = await platform.rows(service, query);
      return rows.map((row) => `${what}: ${JSON.stringify(row).slice(0, 300)}`);
    });
    return (await Promise.all(found)).flat();
  },
};
