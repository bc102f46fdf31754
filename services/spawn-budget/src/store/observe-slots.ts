import type { Telemetry } from '@writ/telemetry';
import { sql } from 'kysely';
import type { SpawnStore } from './spawn-store.ts';

/** A suspended agent keeps its slot (SB-8). */
const SHOWN: Readonly<Record<string, string>> = {
  active: 'holder',
  suspended: 'holder',
  paused: 'paused',
  waiting: 'waiting',
};

/** Tells how many agents of open pools hold a slot, are paused, or wait for one. */
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
      // As in the partial index, which a parameter would not match.
      .where('members.state', '!=', sql.lit('released'))
      .groupBy(['members.tenant', 'members.state'])
      .select((query) => ['members.tenant', 'members.state', query.fn.countAll().as('count')])
      .execute();
    const sums = new Map<string, { tenant: string; state: string; count: number }>();
    for (const { tenant, state, count } of rows) {
      const shown = SHOWN[state] ?? state;
      const sum = sums.get(`${tenant}/${shown}`) ?? { tenant, state: shown, count: 0 };
      sums.set(`${tenant}/${shown}`, { ...sum, count: sum.count + Number(count) });
    }
    return Array.from(sums.values(), ({ tenant, state, count }) => ({
      value: count,
      labels: { 'writ.tenant': tenant, 'writ.state': state },
    }));
  });
}
