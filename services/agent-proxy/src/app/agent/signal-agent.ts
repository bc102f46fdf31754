import type { AgentKey } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { noteDecision } from '../waiting-calls/note-decision.ts';
import { loadAgent } from './read-agents.ts';

/**
 * Handles a signal for an external agent. The signal that an approval is decided, expired or withdrawn wakes the
 * requests of this process that wait for the approval, unless the agent has ended (AP-4). A halt aborts the requests of
 * the agent in this process. On other replicas, waiting requests poll the decision, and the meter and the gateway
 * enforce the halt. Returns whether the signal was the first about this approval.
 * @throws NotFoundError AGENT_NOT_FOUND
 */
export async function signalAgent(
  context: ProxyContext,
  agent: AgentKey,
  name: string,
): Promise<boolean> {
  const { ended_at: endedAt } = await loadAgent(context, agent);
  if (name === 'halted') context.open.halt(agent);
  const callId = /^approval:(.+)$/.exec(name)?.[1];
  if (callId === undefined || endedAt !== null) return false;
  return await noteDecision(context, { ...agent, callId });
}
