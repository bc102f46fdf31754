import { type Clock, type RunKey, WakeableLoop } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import { expiredPools } from '../../store/members.ts';
import { deletePools, poolsClosedBefore } from '../../store/pools.ts';
import { clearAnswerCache } from '../../store/requests.ts';
import type { SpawnStore } from '../../store/spawn-store.ts';
import type { PoolRepository } from './pool-repository.ts';

/** What a {@link createSlotReclaimer} works with. */
export interface ReclaimerParts {
  readonly store: SpawnStore;
  readonly repository: PoolRepository;
  readonly clock: Clock;
  readonly log: Logger;
  /** Interval between two passes, ms. */
  readonly sweepMs: number;
  /** How long closed pools are kept, ms. */
  readonly keepClosedMs: number;
  /**
   * Whether the own clock is far from those of the peers; the loop then does nothing. Calls still end expired leases by
   * this clock.
   */
  readonly isClockSkewed: () => boolean;
}

/** Maximum number of pools per pass. */
const BATCH = 100;

/**
 * Creates the loop that gives the slots of dead agents to queued ones (SB-8) and deletes pools that were
 * closed long ago. Every call ends expired leases as well; this loop does so when no call comes.
 */
export function createSlotReclaimer(parts: ReclaimerParts): WakeableLoop {
  const { log, sweepMs } = parts;
  return new WakeableLoop({
    // A full batch means that there may be more.
    pass: async () => ((await reclaimOnce(parts)) ? 0 : undefined),
    intervalMs: sweepMs,
    backoff: { baseMs: sweepMs, maxMs: sweepMs },
    onError: (error, retry) => log.warn({ err: error, ...retry }, 'failed to sweep pools'),
  });
}

/** Returns whether the batch was full. */
async function reclaimOnce({
  store,
  repository,
  clock,
  keepClosedMs,
  isClockSkewed,
}: ReclaimerParts): Promise<boolean> {
  if (isClockSkewed()) return false;
  const now = clock.now();
  const expired = await expiredPools(store.db, now, BATCH);
  for (const key of expired) await expirePool(repository, key);
  const before = new Date(now.getTime() - keepClosedMs);
  // Outside the transaction, which would hold the lock of all runs in each pass.
  const closed = await poolsClosedBefore(store.db, before, BATCH);
  if (closed.length > 0) {
    await store.transaction(
      async (trx) => {
        await deletePools(trx, closed);
        clearAnswerCache(trx);
      },
      { background: true },
    );
  }
  return expired.length === BATCH || closed.length === BATCH;
}

async function expirePool(repository: PoolRepository, key: RunKey): Promise<void> {
  await repository.transaction(
    [key],
    async (pools) => {
      if (pools.find(key) !== undefined) pools.apply(key, { type: 'expire' });
    },
    { background: true },
  );
}
