import { timestampDate } from '@bufbuild/protobuf/wkt';
import type {
  RefusedAttempt,
  SupervisionService,
} from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { readReceipt } from '@writ/identity';
import { InvalidRequestError, isId, UnavailableError } from '@writ/kernel';
import type { Handler } from '@writ/rpc';
import { recordReceipt } from '../../app/review/record-receipt.ts';
import type { SupervisorContext } from '../../context.ts';
import { type AuditFacts, receiptFacts } from '../../domain/audit/audit-facts.ts';
import type { Receipt } from '../../domain/facts/receipt.ts';
import { appendAudit } from '../../store/audit.ts';
import { rememberRefusal } from '../../store/refusals.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { receiptFrom } from '../../wire/receipt.ts';

/**
 * ReportReceipts: takes receipts that no worker carried, and acknowledges those that are durably
 * recorded or can never be right (TG-8); the others come again. Attempts that the gateway refused go
 * into the audit record, each once (TG-1, SV-8).
 */
export function reportReceipts(
  context: SupervisorContext,
): Handler<typeof SupervisionService.method.reportReceipts> {
  return async ({ receipts: tokens, refusals }, call) => {
    const receipts: Receipt[] = [];
    const acknowledged: string[] = [];
    for (const token of tokens) {
      const read = await readReported(context, token);
      if (read.kind === 'receipt') receipts.push(read.receipt);
      if (read.kind === 'never' && isId(read.id)) acknowledged.push(read.id);
      if (read.kind === 'never') call.log.warn({ receipt_id: read.id }, 'receipt refused');
    }
    if (receipts.length + refusals.length > 0) {
      await context.store.transaction((trx) => recordAll(trx, context, receipts, refusals), {
        background: true,
      });
    }
    const recorded = receipts.map(({ id }) => id);
    return {
      acknowledgedReceiptIds: [...recorded, ...acknowledged],
      acknowledgedRefusalIds: refusals.map(({ refusalId }) => refusalId),
    };
  };
}

async function recordAll(
  trx: SupervisorTransaction,
  context: SupervisorContext,
  receipts: readonly Receipt[],
  refusals: readonly RefusedAttempt[],
): Promise<void> {
  const at = context.clock.now();
  for (const receipt of receipts) {
    if ((await recordReceipt(trx, context, receipt, at)) !== 'unfit') continue;
    // The gateway signed it, so it is put on record although nothing was approved that it fits.
    const { tenant, runId, instance, callId } = receipt;
    if (!(await rememberRefusal(trx, tenant, receipt.id, at))) continue;
    const facts = { reason: 'RECEIPT_MISMATCH', ...receiptFacts(receipt) };
    await appendAudit(trx, { tenant, kind: 'refusal', runId, instance, callId, facts }, at);
  }
  for (const attempt of refusals) {
    const { tenant, runId, agentInstance: instance, callId } = attempt;
    if (!(await rememberRefusal(trx, tenant, attempt.refusalId, at))) continue;
    const facts = refusalFacts(attempt);
    await appendAudit(trx, { tenant, kind: 'refusal', runId, instance, callId, facts }, at);
  }
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

type Reported =
  | { readonly kind: 'receipt'; readonly receipt: Receipt }
  /** It may be right later: its key is not known yet, or clocks differ. */
  | { readonly kind: 'later' }
  | { readonly kind: 'never'; readonly id: string };

/** What a key that is not there yet, or a clock, may still mend. */
const PASSING_CHECKS: readonly (string | undefined)[] = ['kid', 'iat', 'nbf'];

async function readReported({ verifier }: SupervisorContext, token: string): Promise<Reported> {
  try {
    return { kind: 'receipt', receipt: receiptFrom(await readReceipt(verifier, token)) };
  } catch (error) {
    if (error instanceof UnavailableError) return { kind: 'later' };
    if (!(error instanceof InvalidRequestError)) throw error;
    if (PASSING_CHECKS.includes(error.metadata.check)) return { kind: 'later' };
    return { kind: 'never', id: claimedId(token) };
  }
}

/** The id that a worthless token claims, so that whoever keeps sending it can stop. */
function claimedId(token: string): string {
  const [, payload = ''] = token.split('.');
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString());
    return typeof claims === 'object' && claims !== null && 'jti' in claims
      ? String(claims.jti)
      : '';
  } catch {
    // Not even a token: there is no id to acknowledge.
    return '';
  }
}
