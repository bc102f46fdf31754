import { isExternal } from '../domain/manifest/manifest-json.ts';
import type { AgentWorkerPeer } from './agent-worker.ts';

/**
 * The two hosts of agents behind one interface: agent-worker runs agents, agent-proxy stands for external
 * ones (AP-1). All agents of a run live at the host of its root, so that other runs never call agent-proxy.
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
