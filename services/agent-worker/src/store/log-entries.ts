import type { JsonObject, RunKey } from '@writ/kernel';
import { sql } from 'kysely';
import type { WorkerReader } from './worker-store.ts';

/** Position of an entry in the log of its run. */
export interface LogPosition {
  readonly recordedAt: Date;
  readonly instance: string;
  readonly branch: string;
  readonly position: number;
}

/** A log entry in an agent's journal. */
export interface LogEntryRow extends LogPosition {
  /** Name of the agent. */
  readonly name: string;
  readonly callId: string;
  readonly message: string;
  readonly fields: JsonObject;
  /** Absent when the entry has no content. */
  readonly content?: JsonObject;
}

/** A page of a run's log. */
export interface LogPage extends RunKey {
  /** Empty for all agents. */
  readonly instance: string;
  readonly after: LogPosition | undefined;
  readonly limit: number;
}

/** Returns log entries of a run, oldest first (RT-1). */
export async function logEntries(db: WorkerReader, page: LogPage): Promise<LogEntryRow[]> {
  const { tenant, runId, instance, after, limit } = page;
  let query = db
    .selectFrom('journal')
    .innerJoin('agents', (join) =>
      join
        .onRef('agents.tenant', '=', 'journal.tenant')
        .onRef('agents.run_id', '=', 'journal.run_id')
        .onRef('agents.instance', '=', 'journal.instance'),
    )
    .leftJoin('payloads', (join) =>
      join
        .onRef('payloads.tenant', '=', 'journal.tenant')
        .onRef('payloads.run_id', '=', 'journal.run_id')
        .onRef('payloads.digest', '=', 'journal.payload_digest'),
    )
    .select(['agents.name', 'journal.instance', 'branch', 'position', 'call_id', 'value'])
    .select(['recorded_at', 'payloads.content'])
    .where('journal.tenant', '=', tenant)
    .where('journal.run_id', '=', runId)
    // A literal, as in the predicate of the partial index: a generic plan with a parameter could not use the index.
    .where('journal.kind', '=', sql.lit('log'));
  if (instance !== '') query = query.where('journal.instance', '=', instance);
  if (after !== undefined) {
    const { recordedAt, branch, position } = after;
    query = query.where(({ eb, and, or }) => {
      const sameTime = eb('recorded_at', '=', recordedAt);
      const sameAgent = and([sameTime, eb('journal.instance', '=', after.instance)]);
      return or([
        eb('recorded_at', '>', recordedAt),
        and([sameTime, eb('journal.instance', '>', after.instance)]),
        and([sameAgent, eb('branch', '>', branch)]),
        and([sameAgent, eb('branch', '=', branch), eb('position', '>', position)]),
      ]);
    });
  }
  const rows = await query
    .orderBy('recorded_at')
    .orderBy('journal.instance')
    .orderBy('branch')
    .orderBy('position')
    .limit(limit)
    .execute();
  return rows.map(({ recorded_at: recordedAt, call_id: callId, value, content, ...row }) => {
    const entry = JSON.parse(value ?? content ?? '{}') as Pick<
      LogEntryRow,
      'message' | 'fields' | 'content'
    >;
    return { ...row, recordedAt, callId, ...entry };
  });
}
