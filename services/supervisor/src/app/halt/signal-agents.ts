import type { SupervisorContext } from '../../context.ts';
import { isExternal } from '../../domain/manifest/manifest-json.ts';
import { type AgentRow, keyOf } from '../../store/agent/agents.ts';
import { ignoreNotFound } from '../order/order-handler.ts';

/** A signal for several agents. */
export interface Announcement {
  readonly name: 'halted' | 'resumed';
  /** The request id for an agent, the same for a repeat. */
  readonly idOf: (instance: string) => string;
}

/** Signals agents of a run; skips those that the worker does not know. */
export async function signalAgents(
  { peers }: Pick<SupervisorContext, 'peers'>,
  agents: readonly AgentRow[],
  { name, idOf }: Announcement,
): Promise<void> {
  for (const agent of agents) {
    const requestId = idOf(agent.instance);
    const signal = { ...keyOf(agent), requestId, isExternal: isExternal(agent), name };
    await ignoreNotFound(peers.agentWorker.signal(signal));
  }
}
