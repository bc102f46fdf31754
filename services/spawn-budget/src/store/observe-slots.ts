import type { Telemetry } from '@writ/telemetry';
import { sql } from 'kysely';
import type { SpawnStore } from './spawn-store.ts';

/** Label of each state; a suspended agent keeps its slot (SB-8). */
const LABELS: Readonly<Record<string, string>> = {
  active: 'holder',
  suspended: 'holder',
  paused: 'paused',
  waiting: 'waiting',
};

/** Reports how many agents of open pools hold a slot, are paused, or are waiting. */
export function observeSlots({ metrics }: Telemetry, { db }: SpawnStore): void {
  metrics.observe('slots', async () => {
    const rows = await db
      .selectFrom('members')
      .innerJoin('pools', (join) =>
        join
          .onRef('pools.tenant', '=', 'members.tenant')
          .onRef('pools.run_id', '=', 'members.run_id'),
      )
      .where('pools.closed_at', 'is', null)
      // A literal, so that the partial index applies.
      .where('members.state', '!=', sql.lit('released'))
      .groupBy(['members.tenant', 'members.state'])
      .select((query) => ['members.tenant', 'members.state', query.fn.countAll().as('count')])
      .execute();
    const sums = new Map<string, { tenant: string; state: string; count: number }>();
    for (const { tenant, state, count } of rows) {
      const label = LABELS[state] ?? state;
      const sum = sums.get(`${tenant}/${label}`) ?? { tenant, state: label, count: 0 };
      sums.set(`${tenant}/${label}`, { ...sum, count: sum.count + Number(count) });
    }
    return Array.from(sums.values(), ({ tenant, state, count }) => ({
      value: count,
      labels: { 'writ.tenant': tenant, 'writ.state': state },
    }));
  });
}
