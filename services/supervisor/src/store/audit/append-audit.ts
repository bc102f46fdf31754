import { canonicalJson, type JsonObject } from '@writ/kernel';
import { DeferredInsert, type RowOf } from '@writ/store';
import { noteChange } from '../change/commit-notes.ts';
import { audit } from '../schema/audit.ts';
import type { SupervisorDatabase } from '../schema/index.ts';
import type { SupervisorTransaction } from '../supervisor-store.ts';

/** The kinds of audit records (SV-8). */
export const AUDIT_KINDS = [
  'run_started',
  'run_ended',
  'run_purged',
  'agent_started',
  'agent_refused',
  'agent_ended',
  'agent_purged',
  'decision',
  'writ',
  'approval',
  'receipt',
  'refusal',
  'halt',
  'resume',
  'reprioritize',
  'set_caps',
] as const;

type AuditKind = (typeof AUDIT_KINDS)[number];

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
 * Adds an audit record to the transaction of its cause; the records of a transaction are inserted together before its
 * commit (SV-8). The canonical JSON repeats every column, so that the hash of the chain covers all columns. The chainer
 * links the record later.
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
  records.add(trx, {
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

const records = new DeferredInsert<SupervisorDatabase, Omit<AuditRow, 'position'>>({
  table: 'audit',
  columns: audit.columns.filter((name) => name !== 'position'),
});
