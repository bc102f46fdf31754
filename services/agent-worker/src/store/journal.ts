import type { AgentKey } from '@writ/kernel';
import { DataLossError, sha256Hex } from '@writ/kernel';
import { DeferredInsert, prepareQuery } from '@writ/store';
import type { Insertable } from 'kysely';
import {
  callIdOf,
  type JournalEntry,
  readRecordedKind,
  recordedKind,
} from '../domain/journal/entry.ts';
import { agentColumns, runColumns } from './keys.ts';
import type { LeasedAgent } from './leases.ts';
import type { WorkerDatabase } from './schema.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/**
 * Minimum length of JSON text that is stored in `payloads` and shared by all entries with the same
 * value.
 */
const LARGE = 2_048;

/** A journal entry with its segment. */
export interface SegmentEntry extends JournalEntry {
  readonly segment: number;
}

/**
 * Loads the entries that an agent replays, in order: segment 0 and its current segment. Segments in
 * between are folded into its snapshot (RT-1).
 */
export async function loadJournal(
  db: WorkerReader,
  key: AgentKey,
  segment: number,
): Promise<JournalEntry[]> {
  const { tenant, runId, instance } = key;
  const { rows } = await selectEntries(db, { tenant, runId, instance, segment });
  return rows.map((row) => ({
    branch: row.branch,
    position: row.position,
    part: row.part,
    ...readRecordedKind(row.kind),
    argsDigest: row.args_digest,
    value: readValue(row.value ?? row.content, key, row.position),
  }));
}

const selectEntries = prepareQuery((db: WorkerReader, key: AgentKey & { segment: number }) =>
  db
    .selectFrom('journal')
    .leftJoin('payloads', (join) =>
      join
        .onRef('payloads.tenant', '=', 'journal.tenant')
        .onRef('payloads.run_id', '=', 'journal.run_id')
        .onRef('payloads.digest', '=', 'journal.payload_digest'),
    )
    .select([
      'branch',
      'position',
      'part',
      'kind',
      'args_digest',
      'value',
      'payload_digest',
      'content',
    ])
    .where('journal.tenant', '=', key.tenant)
    .where('journal.run_id', '=', key.runId)
    .where('journal.instance', '=', key.instance)
    .where('journal.segment', 'in', [0, key.segment])
    .orderBy('branch')
    .orderBy('position')
    .orderBy('part'),
);

/**
 * Appends entries to a journal. In the same transaction, the agent's row must be updated under its
 * lease first. Large values are stored by digest.
 */
export async function appendJournal(
  trx: WorkerTransaction,
  lease: LeasedAgent,
  entries: readonly SegmentEntry[],
  at: Date,
): Promise<void> {
  if (entries.length === 0) return;
  const rows = entries.map(({ segment, branch, position, part, kind, argsDigest, value }) => {
    const text = JSON.stringify(value);
    const large = text.length >= LARGE;
    return {
      row: {
        ...agentColumns(lease),
        segment,
        branch,
        position,
        part,
        kind: recordedKind(kind),
        args_digest: argsDigest,
        call_id: callIdOf({ branch, position }),
        epoch: lease.epoch,
        value: large ? null : text,
        payload_digest: large ? sha256Hex(text) : null,
        recorded_at: at,
      },
      text,
    };
  });
  const payloads = rows.flatMap(({ row, text }) =>
    row.payload_digest === null
      ? []
      : [{ ...runColumns(lease), digest: row.payload_digest, content: text }],
  );
  if (payloads.length > 0) {
    await trx
      .insertInto('payloads')
      .values(payloads)
      .onConflict((conflict) => conflict.columns(['tenant', 'run_id', 'digest']).doNothing())
      .execute();
  }
  for (const { row } of rows) entryRows.add(trx, row);
}

const entryRows = new DeferredInsert<WorkerDatabase, Insertable<WorkerDatabase['journal']>>({
  table: 'journal',
  columns: [
    'tenant',
    'run_id',
    'instance',
    'segment',
    'branch',
    'position',
    'part',
    'kind',
    'args_digest',
    'call_id',
    'epoch',
    'value',
    'payload_digest',
    'recorded_at',
  ],
});

function readValue(text: string | null, key: AgentKey, position: number): unknown {
  if (text !== null) return JSON.parse(text);
  throw new DataLossError(
    'JOURNAL_PAYLOAD_LOST',
    `The journal of ${key.instance} has no payload for position ${position}.`,
    { agent: key.instance, position: String(position) },
  );
}
