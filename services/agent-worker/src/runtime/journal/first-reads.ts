import { HistoryRetention } from '@writ/kernel';
import type { Delivery } from '../../domain/agent/delivery.ts';
import type { FirstReads } from '../../domain/agent/first-reads.ts';
import type { WorkerPeers } from '../../peers/peers.ts';
import { loadHistory } from '../../store/history.ts';
import type { WorkerStore } from '../../store/worker-store.ts';

/** Timeout for reading the list of tools during a delivery, in milliseconds. */
const LIST_TIMEOUT_MS = 1_000;

/**
 * Reads the data that a delivered agent needs before its first effect. The data is stored with the delivery, so that a
 * replay uses the same data without an additional commit (RT-1, CO-1). If a read fails, the agent reads the data
 * itself.
 */
export async function readFirst(
  { store, peers }: { readonly store: WorkerStore; readonly peers: WorkerPeers },
  delivery: Delivery,
): Promise<FirstReads> {
  const [tools, history] = await Promise.allSettled([
    listTools(peers, delivery),
    recall(store, delivery),
  ]);
  return {
    ...(tools.status === 'fulfilled' && { tools: tools.value }),
    ...(history.status === 'fulfilled' && history.value && { history: history.value }),
  };
}

async function listTools({ toolGateway }: WorkerPeers, delivery: Delivery) {
  const { agent, name, manifest, credentials, slotGrant } = delivery;
  if (manifest.tools.length === 0) return [];
  return await toolGateway.listTools(
    { tenant: agent.tenant, agent: name, names: manifest.tools },
    {
      timeoutMs: LIST_TIMEOUT_MS,
      agentToken: credentials.toolGateway,
      ...(slotGrant && { slotGrant: slotGrant.token }),
    },
  );
}

async function recall(store: WorkerStore, { agent, name, manifest, supervision }: Delivery) {
  const isRead =
    supervision.retention === HistoryRetention.PERMANENT && manifest.kind !== 'json-action';
  if (!isRead || manifest.history !== undefined) return undefined;
  return await loadHistory(store.db, {
    tenant: agent.tenant,
    session_id: supervision.sessionId,
    name,
  });
}
