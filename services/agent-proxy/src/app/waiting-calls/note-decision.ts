import type { CallKey } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { saveAgent } from '../../store/agents.ts';
import type { ProxyTransaction } from '../../store/proxy-store.ts';
import { findToolCall, saveToolCall } from '../../store/tool-calls.ts';

/**
 * Records durably that an approval of a tool call was decided or has expired, and wakes the requests of this process
 * that wait for the decision (AP-4, RT-3). Restarts the idle timeout of the agent, so that it can request the result.
 * Returns false for a call that is unknown or already decided.
 */
export async function noteDecision(
  { store, clock, waitingRequests }: Pick<ProxyContext, 'store' | 'clock' | 'waitingRequests'>,
  call: CallKey,
): Promise<boolean> {
  const at = clock.now();
  const note = async (trx: ProxyTransaction): Promise<boolean> => {
    const row = await findToolCall(trx, call);
    if (row === undefined || row.decided_at !== null) return false;
    await saveToolCall(trx, call, { decided_at: at });
    await saveAgent(trx, call, { used_at: at });
    return true;
  };
  const isNew = await store.transaction(note, { run: call });
  waitingRequests.wake(call.callId);
  return isNew;
}
