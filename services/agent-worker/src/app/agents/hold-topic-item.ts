import type { AgentKey } from '@writ/kernel';
import { deleteOldest } from '../../store/signals.ts';
import type { WorkerTransaction } from '../../store/worker-store.ts';
import { type InternalSignal, storeSignal } from './send-signal.ts';

/** Maximum number of unread items that wait for the next run of an agent. */
export const MAX_HELD_ITEMS = 1_000;

/**
 * Stores an item of a durable subscription whose agent has ended, until the agent's next run in the session follows the
 * topic (AG-5). The oldest item is deleted when there are too many.
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
