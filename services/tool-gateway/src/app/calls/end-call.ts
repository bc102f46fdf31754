import { InternalError } from '@writ/kernel';
import type { GatewayContext } from '../../context.ts';
import { transition } from '../../domain/call-state.ts';
import { capOutput, pickFields } from '../../domain/result.ts';
import type { Tool } from '../../domain/tool.ts';
import { type CallRow, findCall, keyOf, releaseCall } from '../../store/calls.ts';
import { type Outcome, signOutcome, writeReceipted } from '../receipts/record-outcome.ts';
import type { ToolRun } from './run-tool.ts';

/**
 * Records how a run ended: outcome, receipt and TOOL_END in one transaction (TG-5, TG-8). Of a call
 * that was called off and may run again, nothing is recorded.
 * @throws the reason of `cancelSignal` in that case
 */
export async function endCall(
  context: Pick<GatewayContext, 'store' | 'clock' | 'signer' | 'events'>,
  call: CallRow,
  tool: Tool,
  run: ToolRun,
  cancelSignal: AbortSignal,
): Promise<CallRow> {
  const { store, clock } = context;
  const { ending } = run;
  const { next, effect } = transition('running', { kind: 'end', ending }, tool.sideEffect);
  if (effect === 'keep') {
    // Whoever repeats it may do so at another replica.
    if (store.replicas.shared) {
      await store.transaction((trx) => releaseCall(trx, call), { background: true });
    }
    throw cancelSignal.reason;
  }
  if (next !== 'ok' && next !== 'error' && next !== 'unknown') {
    throw new InternalError('INVALID_CALL_STATE', `A call of ${tool.name} cannot end as ${next}.`);
  }
  const at = clock.now();
  const receipted = await signOutcome(context, call, toOutcome(next, call, tool, run), at);
  const written = await store.transaction((trx) =>
    writeReceipted(context, trx, 'intent', receipted, at),
  );
  if (written) return receipted.call;
  // A replica that was taken for dead, and another one that took over, may both come to an end.
  const known = await findCall(store.db, keyOf(call));
  if (known !== undefined && known.state !== 'intent') return known;
  throw new InternalError(
    'OUTCOME_ALREADY_RECORDED',
    `The outcome of ${call.call_id} was recorded by somebody else.`,
    { call_id: call.call_id },
  );
}

function toOutcome(
  state: Outcome['state'],
  call: CallRow,
  { name, maxOutputBytes }: Tool,
  { output, stopReason, message, durationMs }: ToolRun,
): Outcome {
  if (state === 'unknown') {
    const said = `${message} Nobody knows whether it did its work.`;
    return { state, stopReason: `outcome_unknown:${name}`, message: said, durationMs };
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
      ? `The result of ${name} has ${result.fullSizeBytes} bytes; all after the first ${maxOutputBytes} was cut.`
      : '',
    result,
    fields: output.kind === 'json' ? pickFields(output.value, paths) : {},
    durationMs,
  };
}
