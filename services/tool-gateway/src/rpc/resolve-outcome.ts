import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  ResolvedOutcome,
  type ResolveOutcomeRequest,
  type ToolGatewayService,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import {
  canonicalDigest,
  InvalidRequestError,
  isJsonObject,
  NotFoundError,
  PreconditionError,
  parseJsonStrict,
} from '@writ/kernel';
import type { Handlers } from '@writ/rpc';
import { toCallKey } from '../app/calls/presented-call.ts';
import { type Outcome, signOutcome, writeReceipted } from '../app/receipts/record-outcome.ts';
import type { GatewayContext } from '../context.ts';
import { transition } from '../domain/call-state.ts';
import { capOutput, pickFields } from '../domain/result.ts';
import { type CallRow, findCall } from '../store/calls.ts';
import { callStateOf } from '../wire/call-result.ts';

/** Largest result that a person may tell, in bytes. */
const MAX_RESULT_BYTES = 1_048_576;

/**
 * Records what a person found out of a call whose outcome is unknown (TG-5). Once: whoever comes
 * later is given the resolution that stands.
 */
export function resolveOutcome(
  context: GatewayContext,
): Handlers<typeof ToolGatewayService>['resolveOutcome'] {
  const { store, clock, inFlightCalls, telemetry } = context;
  return async (request) => {
    const key = toCallKey(request.call);
    const found = readFinding(request);
    return await store.transaction(async (trx) => {
      const known = await findCall(trx, key);
      if (known === undefined) {
        throw new NotFoundError(
          'CALL_NOT_FOUND',
          `There was no call ${key.callId} of this agent.`,
          {
            call_id: key.callId,
          },
        );
      }
      if (known.resolved_at !== null) return standing(known, known.resolved_at, request, found);
      const { effect } = transition(
        callStateOf(known, inFlightCalls.has(key)),
        { kind: 'resolve', done: found.done },
        known.side_effect ?? 'destructive',
      );
      if (effect !== 'record') throw notUnknown(known);
      const at = clock.now();
      const resolved = await signOutcome(context, known, toOutcome(known, request, found), at);
      await writeReceipted(context, trx, 'unknown', resolved, at);
      telemetry.log.info(
        { tenant: key.tenant, run_id: key.runId, call_id: key.callId, state: resolved.call.state },
        'An unknown outcome was resolved.',
      );
      return { receipt: resolved.token, resolveTime: timestampFromDate(at) };
    });
  };
}

/** What a person found out, read and checked. */
interface Finding {
  readonly done: boolean;
  readonly result: ReturnType<typeof readResult>;
  /** Digest of the whole request, so that a reused id is noticed. */
  readonly digest: string;
}

function readFinding(request: ResolveOutcomeRequest): Finding {
  const { outcome, resultJson, resolvedBy, comment } = request;
  const done = outcome === ResolvedOutcome.DONE;
  if (!done && resultJson !== '') {
    throw new InvalidRequestError(
      'INVALID_RESULT',
      'result_json must be empty for a call that was not done.',
      { field: 'result_json' },
    );
  }
  return {
    done,
    result: readResult(resultJson),
    digest: canonicalDigest({ outcome, resultJson, resolvedBy, comment }),
  };
}

function readResult(resultJson: string) {
  if (resultJson === '') return undefined;
  const value = parseJsonStrict(resultJson, { field: 'result_json', maxBytes: MAX_RESULT_BYTES });
  if (isJsonObject(value)) return value;
  throw new InvalidRequestError('INVALID_RESULT', 'result_json must be a JSON object.', {
    field: 'result_json',
  });
}

function toOutcome(
  { tool, result_fields }: CallRow,
  { requestId, resolvedBy, resultJson }: ResolveOutcomeRequest,
  { done, result, digest }: Finding,
): Outcome {
  const resolution = { requestId, digest, resolvedBy };
  if (!done) {
    return {
      state: 'error',
      stopReason: `tool_error:${tool}`,
      message: `${tool} did nothing, as a person found out.`,
      resolution,
    };
  }
  const message = `${tool} did its work, as a person found out.`;
  if (result === undefined) return { state: 'ok', stopReason: '', message, resolution };
  return {
    state: 'ok',
    stopReason: '',
    message,
    result: capOutput({ kind: 'json', content: resultJson, value: result }, MAX_RESULT_BYTES),
    fields: pickFields(result, JSON.parse(result_fields) as string[]),
    resolution,
  };
}

function standing(
  known: CallRow,
  resolvedAt: Date,
  { requestId }: ResolveOutcomeRequest,
  { digest }: Finding,
) {
  if (known.resolve_request_id === requestId && known.resolve_digest !== digest) {
    throw new InvalidRequestError(
      'REQUEST_ID_REUSED',
      'request_id was used before for another resolution.',
      { field: 'request_id' },
    );
  }
  return { receipt: known.receipt ?? '', resolveTime: timestampFromDate(resolvedAt) };
}

function notUnknown({ call_id, state }: CallRow): PreconditionError {
  const stands = state === 'intent' ? 'has no outcome yet' : `ended as ${state}`;
  return new PreconditionError(
    'CALL_OUTCOME_KNOWN',
    `The call ${call_id} ${stands}; only an unknown outcome can be resolved.`,
    { call_id, state },
  );
}
