import { toJson } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { CallStatus, ReceiptClaimsSchema } from '@writ/contracts/writ/identity/v1/claims_pb';
import type { VerifiedToken } from '@writ/identity';
import type { JsonObject } from '@writ/kernel';
import type { Receipt, ReceiptStatus } from '../domain/facts/receipt.ts';

const STATUSES: Readonly<Partial<Record<CallStatus, ReceiptStatus>>> = {
  [CallStatus.OK]: 'ok',
  [CallStatus.ERROR]: 'error',
  [CallStatus.REFUSED]: 'refused',
  [CallStatus.UNKNOWN]: 'unknown',
  [CallStatus.VOID]: 'void',
};

/** Converts a verified receipt. */
export function receiptFrom({ id, claims }: VerifiedToken<'receipt'>): Receipt {
  return {
    id,
    tenant: claims.tenant,
    runId: claims.runId,
    instance: claims.agent?.instance ?? '',
    callId: claims.callId,
    revision: claims.revision,
    tool: claims.tool,
    writId: claims.writId,
    // A status that this version does not know, from a later version, becomes `unknown`.
    status: STATUSES[claims.status] ?? 'unknown',
    stopReason: claims.stopReason,
    resultSha256: claims.resultSha256,
    argsSha256: claims.argsSha256,
    definitionDigest: claims.definitionDigest,
    registryVersion: claims.registryVersion,
    fields: (claims.resultFields ?? {}) as JsonObject,
    step: claims.step,
    startedAt: claims.startTime && timestampDate(claims.startTime),
    endedAt: claims.endTime && timestampDate(claims.endTime),
    resolvedBy: claims.resolvedBy,
    claimsJson: JSON.stringify(toJson(ReceiptClaimsSchema, claims, { useProtoFieldName: true })),
  };
}
