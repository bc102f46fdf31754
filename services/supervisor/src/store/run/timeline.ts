import type { RunKey } from '@writ/kernel';
import {
  beforeCommit,
  DeferredInsert,
  prepareQuery,
  RowCache,
  type RowOf,
  TransactionValue,
} from '@writ/store';
import { runTopic } from '../change/changes.ts';
import { noteChange } from '../change/commit-notes.ts';
import type { SupervisorDatabase } from '../schema/index.ts';
import { timeline } from '../schema/run.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/** A timeline entry to append. */
export interface TimelineEntry extends RunKey {
  /** Unique within the run: a repeated id is the same event and is ignored (HK-1). */
  readonly eventId: string;
  /** A RunEvent without sequence and time, encoded by wire/timeline.ts. */
  readonly entry: Uint8Array;
}

/** Limit of cached event ids for each run; the ids of a longer timeline are queried instead. */
const MAX_IDS = 4_096;

/** Maximum number of events that one query looks up. */
const MAX_LOOKED_UP = 1_000;

/** The end of a timeline. */
interface Head {
  readonly sequence: number;
  /** The sequence of each event by its id; undefined when ids have to be queried. */
  readonly ids: Map<string, number> | undefined;
}

/** The end of a timeline with the additions of one transaction. */
interface Draft {
  readonly base: Head;
  readonly added: Map<string, number>;
  /** The sequences of the events that were looked up and found, by id. */
  readonly found: Map<string, number>;
  /** The ids of all events that were looked up. */
  readonly looked: Set<string>;
  isClosed: boolean;
}

const heads = new RowCache<Head>();
const drafts = new TransactionValue(() => new Map<string, Draft>());

const entries = new DeferredInsert<SupervisorDatabase, RowOf<typeof timeline>>({
  table: 'timeline',
  columns: timeline.columns,
});

/** Starts the timeline of a run that this transaction inserts. */
export function startTimeline(trx: SupervisorTransaction, key: RunKey): void {
  drafts.of(trx).set(nameOf(key), newDraft({ sequence: 0, ids: new Map() }));
}

/** Drops the cached end of the timeline of a run that this transaction ends (CO-2). */
export async function closeTimeline(trx: SupervisorTransaction, key: RunKey): Promise<void> {
  (await draftOf(trx, key)).isClosed = true;
}

/**
 * Appends an event to the timeline of its run, in the transaction of its cause, and returns its sequence: from 1,
 * without gaps (HK-1). A known event id keeps its sequence. The entries of a transaction are inserted together
 * before its commit (CO-1).
 */
export async function appendTimeline(
  trx: SupervisorTransaction,
  event: TimelineEntry,
  at: Date,
): Promise<number> {
  const { tenant, runId, eventId, entry } = event;
  await lookUpEvents(trx, event, [eventId]);
  const draft = await draftOf(trx, event);
  const known = sequenceOf(event, draft);
  if (known !== undefined) return known;
  const sequence = draft.base.sequence + draft.added.size + 1;
  draft.added.set(eventId, sequence);
  entries.add(trx, {
    tenant,
    run_id: runId,
    sequence,
    event_id: eventId,
    recorded_at: at,
    entry,
  });
  // Runs after the entries are inserted, because the cache must not contain events without rows.
  beforeCommit(trx, drafts, () => keepHeads(trx));
  noteChange(trx, runTopic(event));
  return sequence;
}

/** The sequence of an event on the timeline of its run; undefined if it is not there. */
export async function findSequence(
  trx: SupervisorTransaction,
  event: Omit<TimelineEntry, 'entry'>,
): Promise<number | undefined> {
  await lookUpEvents(trx, event, [event.eventId]);
  return sequenceOf(event, await draftOf(trx, event));
}

/**
 * Looks up events in one round trip before the transaction finds or appends them, which would otherwise take one round
 * trip for each event. Optional: it does not change the results of the transaction.
 */
export async function lookUpEvents(
  trx: SupervisorTransaction,
  key: RunKey,
  eventIds: Iterable<string>,
): Promise<void> {
  const known = drafts.of(trx).get(nameOf(key));
  if ((known?.base ?? heads.get(trx, nameOf(key)))?.ids !== undefined) return;
  const unknown = [...new Set(eventIds)].filter((id) => !known?.looked.has(id));
  if (unknown.length === 0) return;
  const [{ found, looked }, rows] = await Promise.all([
    draftOf(trx, key),
    selectSequences(trx, key, unknown),
  ]);
  for (const { event_id: id, sequence } of rows) found.set(id, sequence);
  for (const id of unknown) looked.add(id);
}

/** The sequence of an event that was looked up. */
function sequenceOf(
  { eventId }: Omit<TimelineEntry, 'entry'>,
  { base, added, found }: Draft,
): number | undefined {
  return added.get(eventId) ?? base.ids?.get(eventId) ?? found.get(eventId);
}

async function selectSequences(
  trx: SupervisorTransaction,
  key: RunKey,
  ids: readonly string[],
): Promise<Pick<RowOf<typeof timeline>, 'event_id' | 'sequence'>[]> {
  const [first = ''] = ids;
  if (ids.length === 1) return (await selectSequence(trx, { ...key, eventId: first })).rows;
  const found: Pick<RowOf<typeof timeline>, 'event_id' | 'sequence'>[] = [];
  for (let from = 0; from < ids.length; from += MAX_LOOKED_UP) {
    const rows = await trx
      .selectFrom('timeline')
      .select(['event_id', 'sequence'])
      .where('tenant', '=', key.tenant)
      .where('run_id', '=', key.runId)
      .where('event_id', 'in', ids.slice(from, from + MAX_LOOKED_UP))
      .execute();
    found.push(...rows);
  }
  return found;
}

const selectSequence = prepareQuery(
  (db: SupervisorReader, event: RunKey & { readonly eventId: string }) =>
    db
      .selectFrom('timeline')
      .select(['event_id', 'sequence'])
      .where('tenant', '=', event.tenant)
      .where('run_id', '=', event.runId)
      .where('event_id', '=', event.eventId),
);

async function draftOf(trx: SupervisorTransaction, key: RunKey): Promise<Draft> {
  const ofTransaction = drafts.of(trx);
  const name = nameOf(key);
  const known = ofTransaction.get(name);
  if (known !== undefined) return known;
  const base = heads.get(trx, name) ?? { sequence: await lastSequence(trx, key), ids: undefined };
  const draft = ofTransaction.get(name) ?? newDraft(base);
  ofTransaction.set(name, draft);
  return draft;
}

function newDraft(base: Head): Draft {
  return { base, added: new Map(), found: new Map(), looked: new Set(), isClosed: false };
}

async function keepHeads(trx: SupervisorTransaction): Promise<void> {
  for (const [name, { base, added, isClosed }] of drafts.of(trx)) {
    // The cache contains only runs that started in this process and have not ended, so that late events of ended runs
    // do not fill it.
    if (isClosed || base.ids === undefined) heads.delete(trx, name);
    else heads.set(trx, name, { sequence: base.sequence + added.size, ids: joined(base, added) });
  }
}

/** Adds the events to the cached map in place, which is safe because a rollback drops the whole cache entry. */
function joined({ ids }: Head, added: ReadonlyMap<string, number>): Head['ids'] {
  if (ids === undefined || ids.size + added.size > MAX_IDS) return undefined;
  for (const [id, sequence] of added) ids.set(id, sequence);
  return ids;
}

function nameOf({ tenant, runId }: RunKey): string {
  return `${tenant}/${runId}`;
}

/** The sequence of the last event of a run; zero when it has none. */
export async function lastSequence(db: SupervisorReader, key: RunKey): Promise<number> {
  return (await selectLast(db, key)).rows[0]?.sequence ?? 0;
}

const selectLast = prepareQuery((db: SupervisorReader, { tenant, runId }: RunKey) =>
  db
    .selectFrom('timeline')
    .select('sequence')
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .orderBy('sequence', 'desc')
    .limit(1),
);

/** Replaces an entry, to delete its content (SUP-4) or to amend a result (TG-8). */
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
