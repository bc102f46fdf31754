import type { CallKey } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { UNKNOWN_OUTCOME } from '../../domain/tool-answer.ts';
import { findAgent } from '../../store/agents.ts';
import type { ProxyTransaction } from '../../store/proxy-store.ts';
import { findToolCall, saveToolCall } from '../../store/tool-calls.ts';
import { agentEnded } from '../agent/agent-ended.ts';
import type { WaitTerms } from './waiting-requests.ts';

/**
 * Records durably which approval a call waits for, before the wait, because another replica may receive the decision.
 * For a second approval of the same call, clears the time of the previous decision.
 */
export async function noteApproval(
  { store }: Pick<ProxyContext, 'store'>,
  call: CallKey,
  approvalId: string,
): Promise<void> {
  const note = async (trx: ProxyTransaction): Promise<void> => {
    const row = await findToolCall(trx, call);
    if (row === undefined || row.approval_id === approvalId) return;
    const isSecond = row.approval_id !== null || approvalId === UNKNOWN_OUTCOME;
    await saveToolCall(trx, call, {
      approval_id: approvalId,
      ...(isSecond && { decided_at: null }),
    });
  };
  await store.transaction(note, { run: call });
}

/**
 * Waits for the decision of a person; returns false when the hold time of the request has expired.
 * @throws PreconditionError RUN_ENDED when the agent has ended, even if another replica received its end; the reason of
 *   `terms.signal`
 */
export async function awaitDecision(
  { waitingRequests, store, slots }: ProxyContext,
  call: CallKey,
  approvalId: string,
  terms: WaitTerms,
): Promise<boolean> {
  const isDecided = async (): Promise<boolean> => {
    if (((await findToolCall(store.db, call))?.decided_at ?? null) !== null) return true;
    const agent = await findAgent(store.db, call);
    if (agent?.ended_at === null) return false;
    throw agentEnded(call, agent?.stop_reason ?? 'ended');
  };
  terms.onWait?.(true);
  slots.released(call);
  try {
    const onProgress = () => terms.onProgress?.(approvalId);
    return await waitingRequests.until(call.callId, isDecided, { ...terms, onProgress });
  } finally {
    terms.onWait?.(false);
  }
}
