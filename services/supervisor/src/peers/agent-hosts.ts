import { isExternal } from '../domain/manifest/manifest-json.ts';
import type { AgentWorkerPeer } from './agent-worker.ts';

/**
 * The two hosts of agents behind one interface: agent-worker runs agents, agent-proxy stands for external
 * ones (AP-1). Only an external root lives at agent-proxy, so that other runs never call it.
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
    cancelAgent: worker.cancelAgent,
    findAgents: worker.findAgents,
    listLogEntries: worker.listLogEntries,
    close() {
      worker.close();
      proxy.close();
    },
  };
}
