import type { RunKey } from '@writ/kernel';
import { prepareQuery } from '@writ/store';
import type { SupervisorReader } from '../supervisor-store.ts';

/** A recorded timeline entry. */
export interface TimelineRow {
  readonly sequence: number;
  readonly recorded_at: Date;
  readonly entry: Uint8Array;
}

/** The sequences of the last events of a tenant's runs, by run; a run without events is omitted. */
export async function lastSequences(
  db: SupervisorReader,
  tenant: string,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (runIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('timeline')
    .select((row) => ['run_id', row.fn.max('sequence').as('sequence')])
    .where('tenant', '=', tenant)
    .where('run_id', 'in', runIds)
    .groupBy('run_id')
    .execute();
  return new Map(rows.map(({ run_id: runId, sequence }) => [runId, Number(sequence)]));
}

/** At most `limit` events of a run after a sequence, in order. */
export async function readTimeline(
  db: SupervisorReader,
  { tenant, runId }: RunKey,
  after: number,
  limit: number,
): Promise<TimelineRow[]> {
  return (await selectEntries(db, { tenant, runId, after, limit })).rows;
}

const selectEntries = prepareQuery(
  (db: SupervisorReader, place: RunKey & { readonly after: number; readonly limit: number }) =>
    db
      .selectFrom('timeline')
      .select(['sequence', 'recorded_at', 'entry'])
      .where('tenant', '=', place.tenant)
      .where('run_id', '=', place.runId)
      .where('sequence', '>', place.after)
      .orderBy('sequence')
      .limit(place.limit),
);

/** The last entries of a run, in order. */
export async function lastEntries(
  db: SupervisorReader,
  { tenant, runId }: RunKey,
  limit: number,
): Promise<Uint8Array[]> {
  const { rows } = await selectLastEntries(db, { tenant, runId, limit });
  return rows.map(({ entry }) => entry).reverse();
}

const selectLastEntries = prepareQuery(
  (db: SupervisorReader, { tenant, runId, limit }: RunKey & { readonly limit: number }) =>
    db
      .selectFrom('timeline')
      .select('entry')
      .where('tenant', '=', tenant)
      .where('run_id', '=', runId)
      .orderBy('sequence', 'desc')
      .limit(limit),
);
