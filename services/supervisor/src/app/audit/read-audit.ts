import { InvalidRequestError, UnavailableError } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { AUDIT_KINDS } from '../../store/audit/append-audit.ts';
import { type CheckpointRow, checkpointsOf } from '../../store/audit/checkpoints.ts';
import { lastUnlinked } from '../../store/audit/link-audit.ts';
import { type AuditFilters, type LinkedRecord, readChain } from '../../store/audit/read-chain.ts';
import { awaitChange } from '../../store/change/change-alarm.ts';
import { signChain } from './sign-checkpoints.ts';

/** Number of records of an export that are read at once. */
const BATCH = 500;

/** One entry of an export. */
export type ExportEntry =
  | { readonly case: 'record'; readonly record: LinkedRecord }
  /** A checkpoint, or the head that ends the export. */
  | { readonly case: 'checkpoint' | 'head'; readonly checkpoint: Omit<CheckpointRow, 'tenant'> };

/** Position of a page in a chain. */
export interface AuditPage {
  /** Sequence of the record before the first record of the page. */
  readonly after: number;
  /**
   * Whether this is the first page. Only for the first page, the call waits until all records that were committed
   * before it are linked.
   */
  readonly isFirst: boolean;
  readonly limit: number;
}

/**
 * Reads the records of a page in the order of the chain (SV-8).
 * @throws UnavailableError AUDIT_CHAIN_LAGGING
 */
export async function listRecords(
  context: SupervisorContext,
  filters: AuditFilters,
  { after, isFirst, limit }: AuditPage,
  signal: AbortSignal,
): Promise<LinkedRecord[]> {
  if (isFirst) await awaitLinked(context, filters.tenant, signal);
  return await readChain(context.store.db, filters, after, limit);
}

/**
 * Reads the current chain of a tenant after a sequence, with its checkpoints in order and a signed head at the end
 * (SV-8).
 * @throws UnavailableError AUDIT_CHAIN_LAGGING; InvalidRequestError AUDIT_RECORD_NOT_FOUND; DataLossError
 *   AUDIT_CHAIN_ROLLED_BACK
 */
export async function* exportChain(
  context: SupervisorContext,
  tenant: string,
  afterSequence: number,
  signal: AbortSignal,
): AsyncGenerator<ExportEntry> {
  const { store, signer, clock, chainGuard } = context;
  await awaitLinked(context, tenant, signal);
  const end = await chainGuard.readEnd(tenant);
  let after = afterSequence;
  if (after > end.sequence) throw noSuchRecord(after, end.sequence);
  const everything = { runId: '', instance: '', kind: '', since: undefined, until: undefined };
  while (after < end.sequence) {
    signal.throwIfAborted();
    const limit = Math.min(BATCH, end.sequence - after);
    const page = await readChain(store.db, { tenant, ...everything }, after, limit);
    const upTo = page.at(-1)?.sequence ?? end.sequence;
    // Later checkpoints are not covered by the head.
    const signed = await checkpointsOf(store.db, tenant, after, Math.min(upTo, end.signed_count));
    for (const record of page) {
      yield { case: 'record', record };
      if (signed[0]?.count !== record.sequence) continue;
      yield { case: 'checkpoint', checkpoint: signed[0] };
      signed.shift();
    }
    after = upTo;
  }
  const signed = await signChain(signer, end, true);
  yield { case: 'head', checkpoint: { count: end.sequence, signed, signed_at: clock.now() } };
}

function noSuchRecord(after: number, last: number): InvalidRequestError {
  return new InvalidRequestError(
    'AUDIT_RECORD_NOT_FOUND',
    `after_sequence ${after} is beyond the last record of the chain, ${last}.`,
    { field: 'after_sequence', last: String(last) },
  );
}

/**
 * Checks the kind of a filter, so that a misspelled kind is reported as an error instead of matching no records.
 * @throws InvalidRequestError INVALID_FIELD naming the kinds
 */
export function assertKind(kind: string): void {
  const kinds: readonly string[] = AUDIT_KINDS;
  if (kind === '' || kinds.includes(kind)) return;
  throw new InvalidRequestError(
    'INVALID_FIELD',
    `kind: ${JSON.stringify(kind)} is not a kind of audit record; the kinds are ${kinds.join(', ')}.`,
    { field: 'kind' },
  );
}

/**
 * Waits until every record of the tenant that was committed before the call is linked into the chain of the tenant, so
 * that a reader sees the records of all earlier responses.
 * @throws UnavailableError AUDIT_CHAIN_LAGGING; the abort reason of `signal`
 */
async function awaitLinked(
  { store, config }: Pick<SupervisorContext, 'store' | 'config'>,
  tenant: string,
  signal: AbortSignal,
): Promise<void> {
  const last = await lastUnlinked(store.db, tenant);
  if (last === undefined) return;
  const enough = AbortSignal.any([signal, AbortSignal.timeout(config.auditWaitMs)]);
  const unlinked = await awaitChange({
    changes: store.changes,
    topic: 'audit-linked',
    pollMs: config.watchPollMs,
    signal: enough,
    read: () => lastUnlinked(store.db, tenant, last),
    isEnough: (record) => record === undefined,
  });
  if (unlinked === undefined) return;
  signal.throwIfAborted();
  throw new UnavailableError(
    'AUDIT_CHAIN_LAGGING',
    `The audit records of tenant ${tenant} were not all linked within ${config.auditWaitMs} ms; retry.`,
    { tenant },
  );
}
