import type { MessageShape } from '@bufbuild/protobuf';
import type { CallToolRequestSchema } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { assertServesTenant, checkWrit, servesTenant } from '@writ/identity';
import {
  derivedId,
  isWritError,
  PermissionDeniedError,
  sha256Hex,
  wrapUnknown,
} from '@writ/kernel';
import type { CallContext } from '@writ/rpc';
import type { Logger } from '@writ/telemetry';
import type { GatewayContext } from '../../context.ts';
import { type ParsedArguments, parseArguments } from '../../domain/call-arguments.ts';
import { fieldsFit } from '../../domain/receipt-fields.ts';
import type { VerifiedWrit } from '../../domain/verified-writ.ts';
import type { GatewayStore } from '../../store/gateway-store.ts';
import { insertRefusal, presentedBy, type Refusal } from '../../store/refusals.ts';
import { toCallKey } from '../../wire/call.ts';

/** A call and the verified writ for exactly this call. */
export interface PresentedCall {
  readonly writ: VerifiedWrit;
  /** Time until which the writ permits execution; a recorded outcome is also returned after this time. */
  readonly validUntil: Date;
  readonly argumentsJson: string;
  readonly arguments: ParsedArguments;
  readonly step: number;
  /** Lease epoch of the worker. */
  readonly epoch: bigint;
  readonly traceparent: string;
}

type Request = MessageShape<typeof CallToolRequestSchema>;

/**
 * Verifies that the request of a call contains a writ for exactly this call; returns the call and the writ (TG-1).
 * @throws InvalidRequestError CALL_REQUIRED; PermissionDeniedError WRIT_INVALID, WRIT_MISMATCH,
 *   TENANT_NOT_SERVED; UnavailableError KEYS_UNAVAILABLE
 */
export async function readPresentedCall(
  { verifier }: Pick<GatewayContext, 'verifier'>,
  request: Request,
  call: CallContext,
): Promise<PresentedCall> {
  const key = toCallKey(request.call);
  const { tool, argumentsJson, step } = request;
  const { claims, id, expireTime } = await checkWrit(
    verifier,
    request.writ,
    { call: key, tool, argumentsJson },
    { allowExpired: true },
  );
  assertServesTenant(call.caller, key.tenant);
  if (!fieldsFit(claims.resultFields)) {
    throw new PermissionDeniedError(
      'WRIT_INVALID',
      'The writ requests more result fields than a receipt can hold.',
      { field: 'result_fields', writ_id: id },
    );
  }
  const writ: VerifiedWrit = {
    ...key,
    id,
    agentName: claims.agent?.name ?? '',
    sessionId: claims.sessionId,
    tool,
    definitionDigest: claims.definitionDigest,
    argsSha256: claims.argsSha256,
    maxToolCalls: claims.maxToolCalls,
    allowedTools: claims.allowedTools,
    resultFields: claims.resultFields,
    noDefaultLimits: claims.noDefaultLimits,
  };
  return {
    writ,
    validUntil: expireTime,
    argumentsJson,
    arguments: parseArguments(argumentsJson),
    step,
    epoch: call.caller.epoch ?? 0n,
    traceparent: call.traceparent,
  };
}

/**
 * Rejects execution under an expired writ (TG-1).
 * @throws PermissionDeniedError WRIT_EXPIRED
 */
export function rejectExpired({ writ, validUntil }: PresentedCall, now: Date): void {
  if (now < validUntil) return;
  throw new PermissionDeniedError(
    'WRIT_EXPIRED',
    'The writ has expired. Call GetDecision for a new one.',
    { writ_id: writ.id },
  );
}

/**
 * Logs a call that is rejected with PERMISSION_DENIED, stores it for the audit chain of the tenant if the caller serves
 * that tenant, and rethrows `error`; any other error is only rethrown (TG-1, SYS-6).
 */
export async function recordRefusal(
  { store, clock }: Pick<GatewayContext, 'store' | 'clock'>,
  request: Request,
  call: CallContext,
  error: unknown,
): Promise<never> {
  if (isWritError(error) && error.kind === 'permission_denied') {
    const { tenant, runId: run_id, instance, callId: call_id } = toCallKey(request.call);
    const attempt = {
      tenant,
      run_id,
      agent_instance: instance,
      call_id,
      reason: error.reason,
      field: error.metadata.field ?? '',
      writ_sha256: sha256Hex(request.writ),
      presented_by: presentedBy(call.caller.service?.replica ?? ''),
    };
    call.log.warn({ ...attempt, tool: request.tool }, 'call rejected: permission denied');
    if (servesTenant(call.caller, tenant)) {
      const refusal_id = derivedId('refused', ...Object.values(attempt));
      await keepRefusal(store, { refusal_id, ...attempt, refused_at: clock.now() }, call.log);
    }
  }
  throw error;
}

/**
 * Stores a refused attempt. If the refusal log is full or the store fails, it only logs that the attempt is dropped,
 * because the caller must receive the error of the writ check (TG-1).
 */
async function keepRefusal(store: GatewayStore, refusal: Refusal, log: Logger): Promise<void> {
  const { tenant, refusal_id } = refusal;
  try {
    const isKept = await store.transaction((trx) => insertRefusal(trx, refusal));
    if (!isKept) log.error({ tenant }, 'refusal log full; dropping refused attempts');
  } catch (error) {
    const { kind, reason } = isWritError(error) ? error : wrapUnknown(error);
    const cause = kind === 'internal' ? { err: error } : {};
    const fields = { tenant, refusal_id, reason, ...cause };
    log.error(fields, 'failed to store a refused attempt; dropping it');
  }
}
