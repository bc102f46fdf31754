import { poolOf, type WorkerPool } from '@writ/identity';
import type { AgentKey } from '@writ/kernel';
import type { AgentWorkerPeer } from './agent-worker.ts';

/**
 * Creates a client that calls the workers in the pool of the tenant, or the workers without a pool when the tenant has
 * no pool (SYS-6). While a pool is down, the agents of its tenants wait; no other worker receives them.
 */
export function pooledAgentWorkers(
  pools: readonly WorkerPool[],
  connect: (pool?: WorkerPool) => AgentWorkerPeer,
): AgentWorkerPeer {
  const unpooled = connect();
  if (pools.length === 0) return unpooled;
  const peers = new Map(pools.map((pool) => [pool, connect(pool)]));
  const peerOf = (tenant: string): AgentWorkerPeer => {
    const pool = poolOf(pools, tenant);
    return (pool && peers.get(pool)) ?? unpooled;
  };
  return {
    deliver: (delivery) => peerOf(delivery.run.tenant).deliver(delivery),
    signal: (signal) => peerOf(signal.tenant).signal(signal),
    cancelRun: (order) => peerOf(order.tenant).cancelRun(order),
    awaitEnd: (requestId, agent, stopReason) =>
      peerOf(agent.tenant).awaitEnd(requestId, agent, stopReason),
    cancelAgent: (order) => peerOf(order.tenant).cancelAgent(order),
    findAgents: (agents) => findAgents(agents, peerOf),
    listLogEntries: (request, signal) => peerOf(request.tenant).listLogEntries(request, signal),
    close() {
      for (const peer of [unpooled, ...peers.values()]) peer.close();
    },
  };
}

/**
 * Returns for each agent whether it is alive, from the workers of its tenant; undefined for agents whose workers do not
 * answer. Throws when all workers fail.
 */
async function findAgents(
  agents: readonly AgentKey[],
  peerOf: (tenant: string) => AgentWorkerPeer,
): Promise<readonly (boolean | undefined)[]> {
  const byPeer = Map.groupBy(agents.keys(), (index) => peerOf(agents[index]?.tenant ?? ''));
  const found: (boolean | undefined)[] = agents.map(() => undefined);
  const answers = await Promise.allSettled(
    Array.from(byPeer, async ([peer, indexes]) => {
      const asked = indexes.flatMap((index) => agents[index] ?? []);
      const alive = await peer.findAgents(asked);
      for (const [position, index] of indexes.entries()) found[index] = alive[position];
    }),
  );
  const [failed] = answers.filter(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected' && answers.every(({ status }) => status === 'rejected')) {
    throw failed.reason;
  }
  return found;
}
