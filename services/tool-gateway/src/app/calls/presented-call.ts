import type { MessageShape } from '@bufbuild/protobuf';
import type {
  CallKey as CallKeyMessage,
  CallToolRequestSchema,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { assertServesTenant, checkWrit } from '@writ/identity';
import {
  derivedId,
  InvalidRequestError,
  isWritError,
  PermissionDeniedError,
  sha256Hex,
} from '@writ/kernel';
import type { CallContext, Caller } from '@writ/rpc';
import type { GatewayContext } from '../../context.ts';
import { type ParsedArguments, parseArguments } from '../../domain/checks.ts';
import { fieldsFit } from '../../domain/result.ts';
import type { CallKey, Writ } from '../../domain/writ.ts';
import { insertRefusal } from '../../store/refusals.ts';

/** A call together with the writ that orders exactly it. */
export interface PresentedCall {
  readonly writ: Writ;
  /** Until when the writ is good for executing; for the record it is good for ever. */
  readonly validUntil: Date;
  readonly argumentsJson: string;
  readonly arguments: ParsedArguments;
  readonly step: number;
  /** Epoch of the worker's lease. */
  readonly epoch: bigint;
  readonly traceparent: string;
}

type Request = MessageShape<typeof CallToolRequestSchema>;

/**
 * Verifies that a call carries a writ for exactly itself (TG-1).
 * @throws PermissionDeniedError WRIT_INVALID, WRIT_MISMATCH, TENANT_NOT_SERVED; UnavailableError
 *   KEYS_UNAVAILABLE
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
      'The writ asks for more result fields than a receipt can carry.',
      { field: 'result_fields', writ_id: id },
    );
  }
  const writ: Writ = {
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
 * Refuses to execute under a writ that is over its time (TG-1).
 * @throws PermissionDeniedError WRIT_EXPIRED
 */
export function refuseExpired({ writ, validUntil }: PresentedCall, now: Date): void {
  if (now < validUntil) return;
  throw new PermissionDeniedError(
    'WRIT_EXPIRED',
    'The writ is over its time; have a fresh one from GetDecision.',
    { writ_id: writ.id },
  );
}

/** The error for a call whose id is that of another call. */
export function callIdTaken({ id }: Writ, field: 'tool' | 'arguments_json'): PermissionDeniedError {
  return new PermissionDeniedError(
    'WRIT_MISMATCH',
    `The call was made before with another ${field}; what is recorded is never replaced.`,
    { field, writ_id: id },
  );
}

/**
 * Logs that a call did not fit its writ and puts it on record for the audit chain of the tenant, which
 * the caller serves; then throws `error` on (TG-1, SYS-6).
 */
export async function recordRefusal(
  { store, clock }: Pick<GatewayContext, 'store' | 'clock'>,
  request: Request,
  call: CallContext,
  error: unknown,
): Promise<never> {
  if (isWritError(error) && error.kind === 'permission_denied') {
    const { tenant, runId: run_id, agentInstance, callId: call_id } = toCallKey(request.call);
    const attempt = {
      tenant,
      run_id,
      agent_instance: agentInstance,
      call_id,
      reason: error.reason,
      field: error.metadata.field ?? '',
      writ_sha256: sha256Hex(request.writ),
      presented_by: call.caller.service?.replica ?? '',
    };
    call.log.warn({ ...attempt, tool: request.tool }, 'A call did not fit its writ.');
    if (servesTenant(call.caller, tenant)) {
      const refusal_id = derivedId('refused', ...Object.values(attempt));
      const refusal = { refusal_id, ...attempt, refused_at: clock.now() };
      const isKept = await store.transaction((trx) => insertRefusal(trx, refusal));
      if (!isKept) call.log.error({ tenant }, 'Refused attempts are not on record: too many wait.');
    }
  }
  throw error;
}

function servesTenant(caller: Caller, tenant: string): boolean {
  const tenants = caller.service?.tenants ?? [];
  return tenants.length === 0 || tenants.includes(tenant);
}

/**
 * The key of a call as the domain has it.
 * @throws InvalidRequestError CALL_REQUIRED when the request names none
 */
export function toCallKey(call: CallKeyMessage | undefined): CallKey {
  if (call === undefined) {
    throw new InvalidRequestError('CALL_REQUIRED', 'call is required.', { field: 'call' });
  }
  const { tenant, runId, agentInstance, callId } = call;
  return { tenant, runId, agentInstance, callId };
}
