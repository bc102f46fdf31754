import { type JsonObject, toJson } from '@bufbuild/protobuf';
import { ReceiptClaimsSchema } from '@writ/contracts/writ/identity/v1/claims_pb';
import { readReceipt } from '@writ/identity';
import { sha256Hex } from '@writ/kernel';
import type { GatewayUnderTest } from './gateway-under-test.ts';
import type { SentCall } from './sent-call.ts';

/** JSON with proto field names, enum names and default values. */
export const AS_CONTRACT = { useProtoFieldName: true, alwaysEmitImplicit: true } as const;

/** Reads a receipt (TG-8); rejects when the gateway did not sign it. */
export async function receiptClaims(gateway: GatewayUnderTest, token: string): Promise<JsonObject> {
  const { claims } = await readReceipt(gateway.verifier, token);
  return toJson(ReceiptClaimsSchema, claims, AS_CONTRACT) as JsonObject;
}

/**
 * Checks that a receipt matches its call, its response and the digest of the result (TG-8), and that the response has
 * no result that the gateway must have deleted (SUP-4).
 * @param writIds ids of the writs that were sent with the call
 * @returns the first fault
 */
export function receiptFault(
  claims: JsonObject,
  answer: JsonObject,
  { request, agentName, isResultDeleted }: SentCall,
  writIds: ReadonlySet<unknown>,
): string | undefined {
  // The receipt of a voided call names no tool and no arguments.
  const isVoid = claims.status === 'CALL_STATUS_VOID';
  const { call } = request;
  const result = answer.result as JsonObject | undefined;
  if (isResultDeleted && result !== undefined) {
    return 'the response has a result that the gateway must have deleted';
  }
  const rules: Readonly<Record<string, boolean>> = {
    tenant: claims.tenant === call.tenant,
    run_id: claims.run_id === call.run_id,
    call_id: claims.call_id === call.call_id,
    'agent.instance': agentOf(claims).instance === call.agent_instance,
    'agent.name': isVoid || agentOf(claims).name === agentName,
    tool: isVoid || claims.tool === request.tool,
    args_sha256: isVoid || claims.args_sha256 === sha256Hex(request.arguments_json),
    // A repeated call may have a different writ; the receipt names one of the writs.
    writ_id: isVoid || writIds.has(claims.writ_id),
    step: isVoid || claims.step === request.step,
    status: claims.status === answer.status,
    stop_reason: isVoid || claims.stop_reason === answer.stop_reason,
    result_sha256: isResultDeleted
      ? claims.result_sha256 !== ''
      : claims.result_sha256 === (result === undefined ? '' : sha256Hex(String(result.content))),
    registry_version: claims.registry_version !== '',
    revision: Number(claims.revision) >= 1,
    'start_time and end_time': isOrdered(claims.start_time, claims.end_time),
  };
  const broken = Object.entries(rules).find(([, holds]) => !holds)?.[0];
  return broken && `the receipt's ${broken} does not match the call and its response`;
}

function agentOf(claims: JsonObject): JsonObject {
  return claims.agent as JsonObject;
}

function isOrdered(start: unknown, end: unknown): boolean {
  if (typeof start !== 'string' || typeof end !== 'string') return false;
  return Date.parse(start) <= Date.parse(end);
}
