import type { SupervisorContext } from '../../context.ts';
import { type AgentRow, keyOf } from '../../store/agent/agents.ts';
import { ignoreNotFound } from '../order/order-handler.ts';

/** A signal for many agents. */
export interface Announcement {
  readonly name: 'halted' | 'resumed';
  /** The id of the request for an agent, so that a repeat is the same. */
  readonly idOf: (instance: string) => string;
}

/** Tells the worker about some agents of a run; what it never got it need not know. */
export async function tellAgents(
  { peers }: Pick<SupervisorContext, 'peers'>,
  agents: readonly AgentRow[],
  { name, idOf }: Announcement,
): Promise<void> {
  for (const agent of agents) {
    const requestId = idOf(agent.instance);
    await ignoreNotFound(peers.agentWorker.signal({ ...keyOf(agent), requestId, name }));
  }
}
