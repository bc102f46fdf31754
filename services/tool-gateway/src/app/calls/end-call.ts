import { InternalError } from '@writ/kernel';
import type { GatewayContext } from '../../context.ts';
import { transition } from '../../domain/call-state.ts';
import { capOutput, replaceNul } from '../../domain/cap-output.ts';
import { pickFields } from '../../domain/receipt-fields.ts';
import type { Tool } from '../../domain/tool.ts';
import { type CallRow, findCall, keyOf, releaseCall } from '../../store/calls.ts';
import { type Outcome, signOutcome, writeOutcome } from '../receipts/record-outcome.ts';
import type { ToolRun } from './run-tool.ts';

/**
 * Records the outcome of the execution of a tool: row, receipt and TOOL_END in one transaction (TG-5, TG-8). Records no
 * outcome for a cancelled call that may run again.
 * @throws the reason of `cancelSignal` for a cancelled call that may run again; InternalError OUTCOME_ALREADY_RECORDED
 */
export async function endCall(
  context: Pick<GatewayContext, 'store' | 'clock' | 'signer' | 'events'>,
  { call, tool }: { readonly call: CallRow; readonly tool: Tool },
  run: ToolRun,
  cancelSignal: AbortSignal,
): Promise<CallRow> {
  const { store, clock } = context;
  const event = { kind: 'end', ending: run.ending } as const;
  const { next, effect } = transition('running', event, tool.sideEffect);
  if (effect === 'keep') {
    // Releases the call, because a repeat may arrive at another replica.
    if (store.replicas.shared) {
      const options = { run: keyOf(call), background: true };
      await store.transaction((trx) => releaseCall(trx, call), options);
    }
    throw cancelSignal.reason;
  }
  if (next !== 'ok' && next !== 'error' && next !== 'unknown') {
    throw new InternalError('INVALID_CALL_STATE', `A call of ${tool.name} cannot end as ${next}.`);
  }
  const outcome = toOutcome(next, call, tool, run);
  const receipted = await signOutcome(context, call, outcome, clock.now());
  const written = await store.transaction(
    (trx) => writeOutcome(context, trx, 'intent', receipted),
    { run: keyOf(call) },
  );
  if (written) return receipted.call;
  // A replica that was paused and declared dead may end a call that another replica took over.
  const known = await findCall(store.db, keyOf(call));
  if (known !== undefined && known.state !== 'intent') return known;
  throw new InternalError(
    'OUTCOME_ALREADY_RECORDED',
    `The outcome of call ${call.call_id} was not recorded, because its record has changed.`,
    { call_id: call.call_id },
  );
}

function toOutcome(
  state: Outcome['state'],
  call: CallRow,
  { name, maxOutputBytes }: Tool,
  { output, stopReason, durationMs, ...run }: ToolRun,
): Outcome {
  const message = replaceNul(run.message);
  if (state === 'unknown') {
    return {
      state,
      stopReason: `outcome_unknown:${name}`,
      message: `${message} Its outcome is unknown.`,
      durationMs,
    };
  }
  if (state === 'error' || output === undefined) {
    return {
      state: 'error',
      stopReason: stopReason ?? `tool_error:${name}`,
      message,
      durationMs,
    };
  }
  const result = capOutput(output, maxOutputBytes);
  const paths = JSON.parse(call.result_fields) as string[];
  return {
    state,
    stopReason: '',
    message: result.truncated
      ? `The result of ${name} has ${result.fullSizeBytes} bytes and was cut to the first ${maxOutputBytes}.`
      : '',
    result,
    fields: output.kind === 'json' ? pickFields(output.value, paths) : {},
    durationMs,
  };
}
