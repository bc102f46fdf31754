import type { GatewayContext } from '../../context.ts';
import { transition } from '../../domain/call-state.ts';
import { callsWithoutOutcome } from '../../store/calls.ts';
import { doubtfulOutcome, signOutcome, writeReceipted } from './record-outcome.ts';

/**
 * Settles what a former process left between intent and outcome (TG-5): a tool that may run again
 * waits for the repeat of its call; any other leaves an UNKNOWN receipt. Runs before anybody calls.
 */
export async function recoverCalls(
  context: Pick<GatewayContext, 'store' | 'clock' | 'signer' | 'events' | 'telemetry'>,
): Promise<void> {
  const { store, clock, telemetry } = context;
  for (const call of await callsWithoutOutcome(store.db)) {
    const sideEffect = call.side_effect ?? 'destructive';
    const { next, effect } = transition('running', { kind: 'crash' }, sideEffect);
    telemetry.log.warn(
      {
        tenant: call.tenant,
        run_id: call.run_id,
        agent: call.agent_instance,
        call_id: call.call_id,
        tool: call.tool,
        state: next,
      },
      'A call was interrupted by the end of a former process.',
    );
    if (effect !== 'record' || next !== 'unknown') continue;
    const at = clock.now();
    const outcome = doubtfulOutcome(call, next, 'was interrupted');
    const receipted = await signOutcome(context, call, outcome, at);
    await store.transaction((trx) => writeReceipted(context, trx, 'intent', receipted, at), {
      background: true,
    });
  }
}
