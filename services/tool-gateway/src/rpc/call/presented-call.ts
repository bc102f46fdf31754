import type { MessageShape } from '@bufbuild/protobuf';
import type {
  CallKey as CallKeyMessage,
  CallToolRequestSchema,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { assertServesTenant, checkWrit } from '@writ/identity';
import { InvalidRequestError, isWritError, PermissionDeniedError } from '@writ/kernel';
import type { CallContext } from '@writ/rpc';
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

/** Puts on record and logs that a call did not fit its writ, then throws `error` on (TG-1). */
export async function recordRefusal(
  { store, clock }: Pick<GatewayContext, 'store' | 'clock'>,
  request: Request,
  call: CallContext,
  error: unknown,
): Promise<never> {
  if (isWritError(error) && error.kind === 'permission_denied') {
    const key = toCallKey(request.call);
    const { field = '', writ_id = '' } = error.metadata;
    const refusal = {
      tenant: key.tenant,
      run_id: key.runId,
      agent_instance: key.agentInstance,
      call_id: key.callId,
      tool: request.tool,
      reason: error.reason,
      field,
      writ_id,
      replica: call.caller.service?.replica ?? '',
    };
    call.log.warn(refusal, 'A call did not fit its writ.');
    await store.transaction((trx) => insertRefusal(trx, { ...refusal, refused_at: clock.now() }));
  }
  throw error;
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
