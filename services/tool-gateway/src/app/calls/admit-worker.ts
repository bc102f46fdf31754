import { admitEpoch } from '@writ/identity';
import type { AgentKey } from '@writ/kernel';
import type { GatewayContext } from '../../context.ts';
import { seenEpoch, storeEpoch } from '../../store/epochs.ts';

/**
 * Records the epoch of a worker that has taken over an agent, so that calls of the previous worker are rejected even
 * before the new worker makes a call (RT-2).
 * @throws PreconditionError STALE_EPOCH
 */
export async function admitWorker(
  { store }: Pick<GatewayContext, 'store'>,
  agent: AgentKey,
  epoch: bigint,
): Promise<void> {
  await store.transaction(
    async (trx) => {
      const seen = await seenEpoch(trx, agent);
      const highest = admitEpoch(seen, epoch);
      if (highest !== seen) await storeEpoch(trx, agent, highest);
    },
    { run: agent },
  );
}
