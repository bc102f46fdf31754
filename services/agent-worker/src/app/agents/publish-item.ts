import type { AgentKey, JsonObject } from '@writ/kernel';
import { FEED_ITEM } from '../../domain/agent/message.ts';
import { followersOf } from '../../store/follows.ts';
import { deleteOldest } from '../../store/signals.ts';
import type { WorkerTransaction } from '../../store/worker-store.ts';
import { type InternalSignal, sendSignal, storeSignal } from './send-signal.ts';

/** Maximum number of unread items that wait for the next run of an agent. */
export const MAX_HELD_ITEMS = 1_000;

/** An item of a topic. */
export interface TopicItem {
  readonly topic: string;
  readonly item: JsonObject;
  /** Unique within the publishing agent: a repeated item is not delivered again. */
  readonly id: string;
}

/**
 * Sends an item to all subscribers of a topic of the publisher's tenant, and wakes those that wait for
 * it, in the given transaction (AG-5, RT-3). For an ended subscriber with a durable subscription, the item is kept
 * until its next run. Returns whether the item is new to a live subscriber.
 */
export async function publishItem(
  trx: WorkerTransaction,
  { tenant, runId, instance }: AgentKey,
  { topic, item, id }: TopicItem,
  at: Date,
): Promise<boolean> {
  const signal = {
    id: `emit-${runId}-${instance}-${id}`,
    name: FEED_ITEM,
    payload: JSON.stringify({ topic, from: { run_id: runId, agent: instance }, item }),
  };
  let isDelivered = false;
  for (const follower of await followersOf(trx, tenant, topic)) {
    const isSent = await sendSignal(trx, follower, signal, at);
    if (!isSent && follower.isDurable) await holdItem(trx, follower, signal, at);
    isDelivered ||= isSent;
  }
  return isDelivered;
}

/**
 * Stores an item of a durable subscription whose agent has ended, until the agent's next run in the session follows the
 * topic (AG-5). The oldest item is deleted when there are too many.
 */
export async function holdItem(
  trx: WorkerTransaction,
  key: AgentKey,
  item: InternalSignal,
  at: Date,
): Promise<void> {
  if (!(await storeSignal(trx, key, item, at))) return;
  await deleteOldest(trx, key, item.name, MAX_HELD_ITEMS);
}
