import type { AgentKey, JsonObject } from '@writ/kernel';
import { FEED_ITEM } from '../../domain/agent/message.ts';
import { followersOf } from '../../store/follows.ts';
import type { WorkerTransaction } from '../../store/worker-store.ts';
import { holdTopicItem } from './hold-topic-item.ts';
import { sendSignal } from './send-signal.ts';

/** An item of a topic. */
export interface TopicItem {
  readonly topic: string;
  readonly item: JsonObject;
  /** Unique within the publishing agent: a repeated item is not delivered again. */
  readonly id: string;
}

/**
 * Sends an item to all subscribers of a topic of the publisher's tenant, and wakes the subscribers that wait for an
 * item, in the given transaction (AG-5, RT-3). For an ended subscriber with a durable subscription, the item is kept
 * until its next run. Returns whether a subscriber that has not ended received the item for the first time.
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
    if (!isSent && follower.isDurable) await holdTopicItem(trx, follower, signal, at);
    isDelivered ||= isSent;
  }
  return isDelivered;
}
