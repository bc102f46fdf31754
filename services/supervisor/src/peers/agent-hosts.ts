import { isExternal } from '../domain/manifest/manifest-json.ts';
import type { AgentWorkerPeer } from './agent-worker.ts';

/**
 * Combines the two hosts of agents in one client: agent-worker runs agents, and agent-proxy receives the deliveries and
 * signals of external agents (AP-1). All agents of a run have the host of its root, so the supervisor calls agent-proxy
 * only for runs of external agents.
 */
export function agentHosts(worker: AgentWorkerPeer, proxy: AgentWorkerPeer): AgentWorkerPeer {
  return {
    deliver: (delivery) => (isExternal(delivery.agent) ? proxy : worker).deliver(delivery),
    signal: (signal) => (signal.isExternal ? proxy : worker).signal(signal),
    async cancelRun(order) {
      const events = order.isExternal ? await proxy.cancelRun(order) : [];
      return [...events, ...(await worker.cancelRun(order))];
    },
    awaitEnd: worker.awaitEnd,
    cancelAgent: (order) => (order.isExternal ? proxy : worker).cancelAgent(order),
    findAgents: worker.findAgents,
    listLogEntries: worker.listLogEntries,
    close() {
      worker.close();
      proxy.close();
    },
  };
}
