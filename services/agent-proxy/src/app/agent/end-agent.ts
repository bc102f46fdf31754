import { type AgentKey, derivedId, isWritError } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { EPOCH } from '../../peers/peers.ts';
import { type AgentRow, findAgent, keyOf } from '../../store/agents.ts';

/**
 * Reports that an agent has ended. The end of the root agent ends the run. For a sub-agent, the function then calls
 * EndChild with the token of the parent; EndChild releases the slot and closes the tab (AP-1, AP-6). The supervisor
 * then cancels the agent in agent-proxy. A repeated call changes nothing.
 */
export async function endAgent(
  { peers, tokens, store }: Pick<ProxyContext, 'peers' | 'tokens' | 'store'>,
  agent: AgentRow,
  stopReason: string,
  requestId: string,
): Promise<void> {
  const key = keyOf(agent);
  try {
    await peers.reportOutcome(requestId, stopReason, (await tokens.of(key)).supervisor);
  } catch (error) {
    // The supervisor does not renew tokens of an agent whose end it has recorded. EndChild may have failed after that
    // report, and is retried even if the token of the sub-agent has expired in the meantime.
    const isReported = isWritError(error) && error.reason === 'RUN_ENDED';
    if (!isReported || agent.parent_instance === null) throw error;
  }
  if (agent.parent_instance === null) return;
  const parent: AgentKey = { ...key, instance: agent.parent_instance };
  // If the parent has ended, the supervisor has already ended this sub-agent.
  if ((await findAgent(store.db, parent))?.ended_at !== null) return;
  const callId = derivedId('call', parent.instance, key.instance, 'end');
  const { supervisor: agentToken } = await tokens.of(parent);
  await peers.endChild(callId, key.instance, { agentToken, epoch: EPOCH });
}
