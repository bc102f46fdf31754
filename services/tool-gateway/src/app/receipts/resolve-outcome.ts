import {
  type CallKey,
  InvalidRequestError,
  type JsonObject,
  NotFoundError,
  PreconditionError,
} from '@writ/kernel';
import { afterCommit } from '@writ/store';
import type { GatewayContext } from '../../context.ts';
import { transition } from '../../domain/call-state.ts';
import { capOutput } from '../../domain/cap-output.ts';
import { pickFields } from '../../domain/receipt-fields.ts';
import { type CallRow, callStateOf, findCall } from '../../store/calls.ts';
import type { GatewayTransaction } from '../../store/gateway-store.ts';
import { type Outcome, signOutcome, writeOutcome } from './record-outcome.ts';

/** Largest result that an operator may enter, in bytes. */
export const MAX_RESOLVED_RESULT_BYTES = 1_048_576;

/** An operator's answer to whether a call with an unknown outcome was executed. */
export interface Resolution {
  readonly requestId: string;
  /** Digest of the request without its id; detects the reuse of a request id. */
  readonly digest: string;
  readonly resolvedBy: string;
  readonly done: boolean;
  /** Result of a call that was executed, if the operator knows it. */
  readonly result?: { readonly json: string; readonly value: JsonObject };
}

/** The resolution in force. */
export interface Resolved {
  readonly receipt: string;
  readonly resolvedAt: Date;
}

/**
 * Resolves a call whose outcome is unknown (TG-5). The first resolution is final; later requests return it.
 * @throws NotFoundError CALL_NOT_FOUND; PreconditionError CALL_OUTCOME_KNOWN; InvalidRequestError REQUEST_ID_REUSED
 */
export async function resolveOutcome(
  context: GatewayContext,
  key: CallKey,
  resolution: Resolution,
): Promise<Resolved> {
  const { store, clock, inFlightCalls, telemetry } = context;
  const work = async (trx: GatewayTransaction): Promise<Resolved> => {
    const known = await findCall(trx, key);
    if (known === undefined) throw callNotFound(key);
    if (known.resolved_at !== null) return inForce(known, known.resolved_at, resolution);
    const { effect } = transition(
      callStateOf(known, inFlightCalls.has(key)),
      { kind: 'resolve', done: resolution.done },
      known.side_effect ?? 'destructive',
    );
    if (effect !== 'record') throw outcomeKnown(known);
    const resolvedAt = clock.now();
    const resolved = await signOutcome(context, known, toOutcome(known, resolution), resolvedAt);
    await writeOutcome(context, trx, 'unknown', resolved);
    const { tenant, runId: run_id, callId: call_id } = key;
    const fields = { tenant, run_id, call_id, state: resolved.call.state };
    afterCommit(trx, () => telemetry.log.info(fields, 'unknown outcome resolved'));
    return { receipt: resolved.token, resolvedAt };
  };
  return await store.transaction(work, { run: key });
}

/** The error for a call that this agent never made. */
function callNotFound({ callId }: CallKey): NotFoundError {
  return new NotFoundError('CALL_NOT_FOUND', `This agent has no call ${callId}.`, {
    call_id: callId,
  });
}

function toOutcome(
  { tool, result_fields }: CallRow,
  { done, result, ...resolution }: Resolution,
): Outcome {
  if (!done) {
    return {
      state: 'error',
      stopReason: `tool_error:${tool}`,
      message: `An operator confirmed that ${tool} was not executed.`,
      resolution,
    };
  }
  const message = `An operator confirmed that ${tool} was executed.`;
  if (result === undefined) return { state: 'ok', stopReason: '', message, resolution };
  const output = { kind: 'json', content: result.json, value: result.value } as const;
  return {
    state: 'ok',
    stopReason: '',
    message,
    result: capOutput(output, MAX_RESOLVED_RESULT_BYTES),
    fields: pickFields(result.value, JSON.parse(result_fields) as string[]),
    resolution,
  };
}

function inForce(known: CallRow, resolvedAt: Date, { requestId, digest }: Resolution): Resolved {
  if (known.resolve_request_id === requestId && known.resolve_digest !== digest) {
    throw new InvalidRequestError(
      'REQUEST_ID_REUSED',
      'request_id was used before for another resolution.',
      { field: 'request_id' },
    );
  }
  return { receipt: known.receipt ?? '', resolvedAt };
}

function outcomeKnown({ call_id, state }: CallRow): PreconditionError {
  const outcome = state === 'intent' ? 'has no outcome yet' : `has the outcome ${state}`;
  return new PreconditionError(
    'CALL_OUTCOME_KNOWN',
    `Call ${call_id} ${outcome}. Only an unknown outcome can be resolved.`,
    { call_id, state },
  );
}
