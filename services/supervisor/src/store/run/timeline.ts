import { NotFoundError } from '@writ/kernel';
import { pickColumns, prepareQuery } from '@writ/store';
import { noteChange, type RunKey, runTopic } from '../change/changes.ts';
import type { TimelineTable } from '../schema/run-tables.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/** One event to record. */
export interface TimelineEntry extends RunKey {
  /** Unique within the run: a repeat is the same event and changes nothing (HK-1). */
  readonly eventId: string;
  /** A RunEvent without sequence and time, as events.ts encodes it. */
  readonly entry: Uint8Array;
}

/** One recorded event. */
export interface TimelineRow {
  readonly sequence: number;
  readonly recorded_at: Date;
  readonly entry: Uint8Array;
}

/**
 * Records an event in the transaction of its fact, and returns its place in the run's timeline: from
 * 1, without gaps (HK-1). An event id that is there already keeps its place.
 * @throws NotFoundError RUN_NOT_FOUND
 */
export async function appendTimeline(
  trx: SupervisorTransaction,
  event: TimelineEntry,
  at: Date,
): Promise<number> {
  const { tenant, runId, eventId, entry } = event;
  const [known] = (await selectSequence(trx, event)).rows;
  if (known !== undefined) return known.sequence;
  const [run] = (await takeSequence(trx, event)).rows;
  if (run === undefined) throw runNotFound(runId);
  const sequence = run.last_sequence;
  const row = { tenant, run_id: runId, sequence, event_id: eventId, recorded_at: at, entry };
  await insertEntry(trx, row);
  noteChange(trx, runTopic(event));
  return sequence;
}

const selectSequence = prepareQuery(
  (db: SupervisorReader, event: RunKey & { readonly eventId: string }) =>
    db
      .selectFrom('timeline')
      .select('sequence')
      .where('tenant', '=', event.tenant)
      .where('run_id', '=', event.runId)
      .where('event_id', '=', event.eventId),
);

const takeSequence = prepareQuery((db: SupervisorReader, { tenant, runId }: RunKey) =>
  db
    .updateTable('runs')
    .set((row) => ({ last_sequence: row('last_sequence', '+', 1) }))
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .returning('last_sequence'),
);

const ENTRY_COLUMNS = ['tenant', 'run_id', 'sequence', 'event_id', 'recorded_at', 'entry'] as const;

const insertEntry = prepareQuery((db: SupervisorReader, row: TimelineTable) =>
  db.insertInto('timeline').values(pickColumns(row, ENTRY_COLUMNS)),
);

/** At most `limit` events of a run after a place, in order. */
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

/** Puts another entry in the place of a recorded one (SUP-4). */
export async function replaceEntry(
  trx: SupervisorTransaction,
  { tenant, runId }: RunKey,
  sequence: number,
  entry: Uint8Array,
): Promise<void> {
  await trx
    .updateTable('timeline')
    .set({ entry })
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .where('sequence', '=', sequence)
    .execute();
}

/** The error for a run that does not exist for its tenant. */
export function runNotFound(runId: string): NotFoundError {
  return new NotFoundError('RUN_NOT_FOUND', `There is no run ${runId}.`, { run_id: runId });
}
