import type { JsonObject as StructInit } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { mintReceipt, type Signer } from '@writ/identity';
import { type JsonObject, sha256Hex } from '@writ/kernel';
import type { CallRow } from '../../store/calls.ts';

/** A call with the receipt of its outcome. */
export interface ReceiptedCall {
  readonly call: CallRow;
  readonly receiptId: string;
  readonly token: string;
}

const STATUSES: Readonly<Record<Exclude<CallRow['state'], 'intent'>, CallStatus>> = {
  ok: CallStatus.OK,
  error: CallStatus.ERROR,
  refused: CallStatus.REFUSED,
  unknown: CallStatus.UNKNOWN,
  burnt: CallStatus.VOID,
};

/** What a call's state is called on the wire. */
export function statusOf({ state }: Pick<CallRow, 'state'>): CallStatus {
  return state === 'intent' ? CallStatus.UNSPECIFIED : STATUSES[state];
}

/**
 * Signs the receipt of an outcome (TG-8). The call comes with the outcome and the receipt's number
 * filled in; the receipt is added to it.
 */
export async function signReceipt(
  signer: Signer,
  call: CallRow,
  fields: JsonObject = {},
): Promise<ReceiptedCall> {
  const { token, id: receiptId } = await mintReceipt(signer, {
    tenant: call.tenant,
    runId: call.run_id,
    agent: { name: call.agent_name, instance: call.agent_instance },
    callId: call.call_id,
    tool: call.tool,
    writId: call.writ_id,
    status: statusOf(call),
    stopReason: call.stop_reason,
    resultSha256: call.result_content === null ? '' : sha256Hex(call.result_content),
    resultFields: structuredClone(fields) as StructInit,
    argsSha256: call.args_sha256,
    definitionDigest: call.definition_digest,
    registryVersion: call.registry_version,
    startTime: timestampFromDate(call.started_at),
    endTime: timestampFromDate(call.ended_at ?? call.started_at),
    revision: call.revision,
    resolvedBy: call.resolved_by ?? '',
    step: call.step,
  });
  return { call: { ...call, receipt: token }, receiptId, token };
}
