import type { Telemetry } from '@writ/telemetry';
import type { WorkerStore } from './worker-store.ts';

/** Tells how many agents have not ended, by state. */
export function observeAgents({ metrics }: Telemetry, { db }: WorkerStore): void {
  metrics.observe('agents', async () => {
    const rows = await db
      .selectFrom('agents')
      .where('ended_at', 'is', null)
      .groupBy('state')
      .select((query) => ['state', query.fn.countAll().as('count')])
      .execute();
    return rows.map(({ state, count }) => ({
      value: Number(count),
      labels: { 'writ.state': state.toLowerCase() },
    }));
  });
}
