import type { AgentKey } from '@writ/kernel';
import { deleteOldest } from '../../store/signals.ts';
import type { WorkerTransaction } from '../../store/worker-store.ts';
import { type InternalSignal, storeSignal } from './send-signal.ts';

/** Maximum number of unread topic items that are stored for an ended agent until its next run. */
export const MAX_HELD_ITEMS = 1_000;

/**
 * Stores a topic item for a durable subscriber that has ended. The next run of the agent in the same session receives
 * the item when it subscribes to the topic (AG-5). Deletes the oldest items when more than {@link MAX_HELD_ITEMS} are
 * stored for the agent.
 */
export async function holdTopicItem(
  trx: WorkerTransaction,
  key: AgentKey,
  item: InternalSignal,
  at: Date,
): Promise<void> {
  if (!(await storeSignal(trx, key, item, at))) return;
  await deleteOldest(trx, key, item.name, MAX_HELD_ITEMS);
}
