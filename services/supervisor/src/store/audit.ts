import { canonicalJson, type JsonObject } from '@writ/kernel';
import { pickColumns, prepareQuery, type RowOf } from '@writ/store';
import { noteChange } from './change/changes.ts';
import { audit } from './schema/audit.ts';
import type { SupervisorReader, SupervisorTransaction } from './supervisor-store.ts';

/** The kind of an audit record (SV-8). */
type AuditKind =
  | 'run_started'
  | 'run_ended'
  | 'run_purged'
  | 'agent_started'
  | 'agent_refused'
  | 'agent_ended'
  | 'decision'
  | 'writ'
  | 'approval'
  | 'receipt'
  | 'refusal'
  | 'halt'
  | 'resume';

/** The row of an audit record. */
export type AuditRow = RowOf<typeof audit>;

/** One record for the chain of a tenant. */
export interface AuditEntry {
  readonly tenant: string;
  readonly kind: AuditKind;
  readonly runId?: string | undefined;
  readonly instance?: string | undefined;
  readonly callId?: string | undefined;
  /** Ids, digests, verdicts and names; never content. Undefined fields are omitted. */
  readonly facts: Readonly<Record<string, JsonObject[string] | undefined>>;
}

/**
 * Inserts an audit record in the transaction of its cause (SV-8). Its canonical JSON repeats every column, so that
 * the hash of the chain covers them. The chainer links it later.
 */
export async function appendAudit(
  trx: SupervisorTransaction,
  entry: AuditEntry,
  at: Date,
): Promise<void> {
  const { tenant, kind, runId = '', instance = '', callId = '', facts } = entry;
  const place = { run_id: runId, agent_instance: instance, call_id: callId };
  const given = Object.entries({ ...facts, ...place }).filter(
    ([, value]) => value !== undefined && value !== '',
  );
  await insertRecord(trx, {
    tenant,
    recorded_at: at,
    kind,
    run_id: runId,
    instance,
    call_id: callId,
    canonical_json: canonicalJson({
      ...Object.fromEntries(given),
      tenant,
      kind,
      record_time: at.toISOString(),
    }),
    sequence: null,
    previous_hash: null,
    hash: null,
  });
  noteChange(trx, 'audit');
}

const INSERTED = audit.columns.filter((name) => name !== 'position');

const insertRecord = prepareQuery((db: SupervisorReader, row: Omit<AuditRow, 'position'>) =>
  db.insertInto('audit').values(pickColumns(row, INSERTED)),
);
