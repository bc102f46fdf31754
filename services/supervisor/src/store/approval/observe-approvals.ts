import type { Telemetry } from '@writ/telemetry';
import { sql } from 'kysely';
import type { SupervisorStore } from '../supervisor-store.ts';

/** Tells how many approvals wait for a person, by tenant. */
export function observeApprovals({ metrics }: Telemetry, { db }: SupervisorStore): void {
  metrics.observe('approvalsOpen', async () => {
    const rows = await db
      .selectFrom('approvals')
      // As in the partial index, which a parameter would not match.
      .where('state', '=', sql.lit('pending'))
      .groupBy('tenant')
      .select((query) => ['tenant', query.fn.countAll().as('count')])
      .execute();
    return rows.map(({ tenant, count }) => ({
      value: Number(count),
      labels: { 'writ.tenant': tenant },
    }));
  });
}
