import { type Reply, replyFor, replySignal } from '../../domain/agent/message.ts';
import type { AgentRow } from '../../store/agents.ts';
import { deleteFollows } from '../../store/follows.ts';
import { keyOf } from '../../store/keys.ts';
import { pauseTimersWhileParked } from '../../store/timers.ts';
import type { WorkerTransaction } from '../../store/worker-store.ts';
import { sendSignal } from './send-signal.ts';

/** How an agent ended. */
export interface AgentEnd {
  readonly stopReason: string;
  /** The approved answer, if there is one. */
  readonly answer?: string | undefined;
}

/**
 * Notifies the agent that waits for an ended agent's reply, and deletes the ended agent's topic
 * subscriptions. Must run in the transaction that ends the agent (RT-3, AG-3). Returns whether
 * another agent was woken.
 */
export async function onAgentEnded(
  trx: WorkerTransaction,
  agent: AgentRow,
  { stopReason, answer }: AgentEnd,
  at: Date,
): Promise<boolean> {
  const key = keyOf(agent);
  await deleteFollows(trx, key);
  if (agent.reply_to === null) return false;
  await pauseTimersWhileParked(trx, key, 'PARKED', 'COMPLETED', at);
  const reply: Reply = replyFor(stopReason, answer);
  const signal = {
    id: `reply-${agent.instance}`,
    name: replySignal(agent.instance),
    payload: JSON.stringify(reply),
  };
  return await sendSignal(trx, { ...key, instance: agent.reply_to }, signal, at);
}
