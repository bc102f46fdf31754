import { admitEpoch } from '@writ/identity';
import type { AgentKey } from '@writ/kernel';
import type { MeterContext } from '../../context.ts';
import { admitCaller, requireTab } from '../../store/require-spendable.ts';

/**
 * Records the epoch of a worker that has taken over an agent, so that calls of the previous worker are rejected before
 * the new worker makes its first call (RT-2).
 * @throws PreconditionError STALE_EPOCH; NotFoundError TAB_NOT_FOUND
 */
export async function admitWorker(
  { store }: Pick<MeterContext, 'store'>,
  key: AgentKey,
  epoch: bigint,
): Promise<void> {
  const tab = await requireTab(store.db, key);
  if (admitEpoch(tab.epoch, epoch) === tab.epoch) return;
  await store.transaction(async (trx) => admitCaller(trx, await requireTab(trx, key), epoch), {
    run: key,
  });
}
