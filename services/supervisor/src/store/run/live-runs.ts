import type { StoredRunState } from '../schema/run.ts';
import type { SupervisorReader } from '../supervisor-store.ts';
import type { RunRow } from './runs.ts';

/** Live runs past their deadline, without an ending, of all tenants. */
export async function overdueRuns(db: SupervisorReader, now: Date): Promise<RunRow[]> {
  return await db
    .selectFrom('runs')
    .selectAll()
    .where('ended_at', 'is', null)
    .where('deadline_at', '<=', now)
    .where('state', '!=', 'ENDING')
    .orderBy('deadline_at')
    .execute();
}

/** States of a run that has started and is not suspended or parked. */
export const ACTIVE_RUN_STATES = ['RUNNING', 'ENDING'] as const satisfies readonly StoredRunState[];

/**
 * Returns the active runs of all tenants: the runs that have started, have not ended, do not wait for a person, a
 * signal or a timer, and are not parked by a halt.
 */
export async function activeRuns(
  db: SupervisorReader,
): Promise<Pick<RunRow, 'tenant' | 'run_id'>[]> {
  return await db
    .selectFrom('runs')
    .select(['tenant', 'run_id'])
    .where('ended_at', 'is', null)
    .where('state', 'in', ACTIVE_RUN_STATES)
    .execute();
}
