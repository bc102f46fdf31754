import { canonicalDigest, type JsonObject } from '@writ/kernel';
import type { BusinessOutcome } from '@writ/policy';
import type { Receipt } from '../facts/receipt.ts';
import { actionName, type RecordedAction } from '../result/recorded-action.ts';

/** The facts of an audit record: ids, digests, names and verdicts. Undefined fields are omitted. */
export type AuditFacts = Readonly<Record<string, JsonObject[string] | undefined>>;

/** Name and digest of an action; the audit record does not contain its content (SV-8). */
export function actionFacts(prefix: string, action: RecordedAction | undefined): AuditFacts {
  if (action === undefined) return {};
  return {
    [`${prefix}_name`]: actionName(action),
    // Recorded because a client-executed tool can have the same name as a tool of the gateway.
    ...(action.kind === 'client_tool' && { [`${prefix}_kind`]: action.kind }),
    [`${prefix}_digest`]: canonicalDigest({ ...action }),
  };
}

/** The facts of a receipt with the business outcome of the call, without its result fields. */
export function receiptFacts(receipt: Receipt, outcome: BusinessOutcome | null): AuditFacts {
  return {
    receipt_id: receipt.id,
    writ_id: receipt.writId,
    tool: receipt.tool,
    status: receipt.status,
    outcome: outcome ?? undefined,
    stop_reason: receipt.stopReason,
    revision: receipt.revision,
    args_sha256: receipt.argsSha256,
    result_sha256: receipt.resultSha256,
    definition_digest: receipt.definitionDigest,
    registry_version: receipt.registryVersion,
    resolved_by: receipt.resolvedBy,
  };
}
