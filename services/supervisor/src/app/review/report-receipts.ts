import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { RefusedAttempt } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { readReceipt } from '@writ/identity';
import { InvalidRequestError, isId, UnavailableError } from '@writ/kernel';
import { type SupervisorContext, type Tx, transact } from '../../context.ts';
import { type AuditFacts, receiptFacts } from '../../domain/audit/audit-facts.ts';
import type { Receipt } from '../../domain/facts/receipt.ts';
import { appendAudit } from '../../store/audit/append-audit.ts';
import { rememberRefusal } from '../../store/requests.ts';
import { findReceipt } from '../../store/review/receipts.ts';
import type { SupervisorReader } from '../../store/supervisor-store.ts';
import { receiptFrom } from '../../wire/receipt.ts';
import { recordReceipt } from './record-receipt.ts';

/** Result of {@link recordReported}. */
export interface Reported {
  /** Receipts that the gateway need not send again. */
  readonly acknowledgedIds: string[];
  /** The unverified ids in invalid tokens; an empty string for a token without an id. */
  readonly invalidIds: readonly string[];
}

/**
 * Records the valid receipts and the refused attempts of a report. Most receipts have already arrived from the worker
 * with a review, and a receipt that is already recorded needs no transaction (CO-1). The other receipts are recorded in
 * one transaction for each run, so that a long report delays one run at a time (SYS-5).
 */
export async function recordReported(
  context: SupervisorContext,
  tokens: readonly string[],
  refusals: readonly RefusedAttempt[],
): Promise<Reported> {
  const receipts: Receipt[] = [];
  const invalidIds: string[] = [];
  for (const token of tokens) {
    const read = await readReported(context, token);
    if (read.kind === 'receipt') receipts.push(read.receipt);
    if (read.kind === 'never') invalidIds.push(read.id);
  }
  const unrecorded: Receipt[] = [];
  for (const receipt of receipts) {
    if (!(await isRecorded(context.store.db, receipt))) unrecorded.push(receipt);
  }
  const mismatched: Receipt[] = [];
  for (const ofRun of Map.groupBy(unrecorded, runOf).values()) {
    const options = { run: ofRun[0], background: true };
    mismatched.push(...(await transact(context, (tx) => recordOfRun(tx, ofRun), options)));
  }
  if (mismatched.length + refusals.length > 0) {
    await transact(context, (tx) => recordRefused(tx, mismatched, refusals), { background: true });
  }
  const recorded = receipts.map(({ id }) => id);
  return { acknowledgedIds: [...recorded, ...invalidIds.filter(isId)], invalidIds };
}

/**
 * Whether this receipt is already recorded, with the same claims, as the latest receipt of its call. If not, it must be
 * compared with the approved call.
 */
async function isRecorded(db: SupervisorReader, receipt: Receipt): Promise<boolean> {
  const row = await findReceipt(db, receipt);
  return row?.receipt_id === receipt.id && row.claims === receipt.claimsJson;
}

function runOf({ tenant, runId }: Receipt): string {
  return `${tenant}/${runId}`;
}

/** Records the receipts of one run; returns the receipts that match no approved call. */
async function recordOfRun(tx: Tx, receipts: readonly Receipt[]): Promise<Receipt[]> {
  const mismatched: Receipt[] = [];
  for (const receipt of receipts) {
    if ((await recordReceipt(tx, receipt)) === 'mismatch') mismatched.push(receipt);
  }
  return mismatched;
}

/** Audits refused attempts, and receipts that match no approved call. */
async function recordRefused(
  tx: Tx,
  receipts: readonly Receipt[],
  refusals: readonly RefusedAttempt[],
): Promise<void> {
  const { trx, at } = tx;
  for (const receipt of receipts) await auditMismatch(tx, receipt);
  for (const attempt of refusals) {
    const { tenant, runId, agentInstance: instance, callId } = attempt;
    if (!(await rememberRefusal(trx, tenant, attempt.refusalId, at))) continue;
    const facts = refusalFacts(attempt);
    await appendAudit(trx, { tenant, kind: 'refusal', runId, instance, callId, facts }, at);
  }
}

/**
 * Audits a receipt that matches no approved call, once per receipt. Such a receipt is audited because the gateway
 * signed it.
 */
export async function auditMismatch({ trx, at }: Tx, receipt: Receipt): Promise<void> {
  const { tenant, runId, instance, callId } = receipt;
  if (!(await rememberRefusal(trx, tenant, receipt.id, at))) return;
  const facts = { reason: 'RECEIPT_MISMATCH', ...receiptFacts(receipt, null) };
  await appendAudit(trx, { tenant, kind: 'refusal', runId, instance, callId, facts }, at);
}

function refusalFacts({ refuseTime, ...attempt }: RefusedAttempt): AuditFacts {
  return {
    refusal_id: attempt.refusalId,
    reason: attempt.reason,
    field: attempt.field,
    writ_sha256: attempt.writSha256,
    presented_by: attempt.presentedBy,
    refuse_time: refuseTime && timestampDate(refuseTime).toISOString(),
  };
}

type ReportedReceipt =
  | { readonly kind: 'receipt'; readonly receipt: Receipt }
  /**
   * The receipt cannot be verified, because its key is unavailable, unknown or retired; it is not acknowledged, so the
   * gateway sends it again.
   */
  | { readonly kind: 'later' }
  | { readonly kind: 'never'; readonly id: string };

async function readReported(
  { verifier }: SupervisorContext,
  token: string,
): Promise<ReportedReceipt> {
  try {
    return { kind: 'receipt', receipt: receiptFrom(await readReceipt(verifier, token)) };
  } catch (error) {
    if (error instanceof UnavailableError) return { kind: 'later' };
    if (!(error instanceof InvalidRequestError)) throw error;
    if (error.metadata.check === 'kid') return { kind: 'later' };
    return { kind: 'never', id: claimedId(token) };
  }
}

/**
 * Returns the unverified id in an invalid token, which is acknowledged to end the retries of the gateway; empty if
 * there is none.
 */
function claimedId(token: string): string {
  const [, payload = ''] = token.split('.');
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString());
    return typeof claims === 'object' && claims !== null && 'jti' in claims
      ? String(claims.jti)
      : '';
  } catch {
    // Not a JWS, so there is no id to acknowledge.
    return '';
  }
}
