import type { AgentKey } from '@writ/kernel';
import { agentColumns } from '../../store/keys.ts';
import { deleteOldest, findSignal, insertSignal } from '../../store/signals.ts';
import type { WorkerTransaction } from '../../store/worker-store.ts';
import type { InternalSignal } from './send-signal.ts';

/** Maximum number of unread items that wait for the next run of an agent. */
export const MAX_HELD_ITEMS = 1_000;

/**
 * Stores an item of a durable subscription whose agent has ended, until the agent's next run in the session follows the
 * topic (AG-5). The oldest item is deleted when there are too many.
 */
export async function holdItem(
  trx: WorkerTransaction,
  key: AgentKey,
  { id, name, payload }: InternalSignal,
  at: Date,
): Promise<void> {
  if ((await findSignal(trx, key, id)) !== undefined) return;
  await insertSignal(trx, {
    ...agentColumns(key),
    request_id: id,
    request_digest: '',
    name,
    payload,
    decision: null,
    received_at: at,
    consumed_at: null,
  });
  await deleteOldest(trx, key, name, MAX_HELD_ITEMS);
}
