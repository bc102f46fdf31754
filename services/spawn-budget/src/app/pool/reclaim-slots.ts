import { type Clock, isRetryable, type RunKey, WakeableLoop } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import { expiredPools } from '../../store/members.ts';
import { deletePools, poolsClosedBefore } from '../../store/pools.ts';
import { clearAnswerCache } from '../../store/requests.ts';
import type { SpawnStore } from '../../store/spawn-store.ts';
import type { PoolRepository } from './pool-repository.ts';

/** Dependencies of {@link createSlotReclaimer}. */
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
   * Whether the clock of this replica differs too much from the clocks of its peers. If so, the loop does nothing, but
   * calls still use this clock to end expired leases.
   */
  readonly isClockSkewed: () => boolean;
}

/** Maximum number of pools whose expired leases one pass ends, and maximum number of closed pools that it deletes. */
const BATCH = 100;

/**
 * Creates the loop that gives the slots of dead agents to queued agents (SB-8) and deletes pools that have been closed
 * for `keepClosedMs`. Every call also ends expired leases of its pool; the loop ends them for pools without calls.
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

/**
 * Ends expired leases and deletes old closed pools, each up to {@link BATCH}. Returns whether a batch was full, so that
 * there may be more.
 * @throws a retryable error of a pool at once; otherwise the first permanent error of a pool, after the pass
 */
async function reclaimOnce(parts: ReclaimerParts): Promise<boolean> {
  const { store, clock, keepClosedMs, isClockSkewed } = parts;
  if (isClockSkewed()) return false;
  const now = clock.now();
  const expired = await expiredPools(store.db, now, BATCH);
  const errors = await expirePools(parts, expired);
  const before = new Date(now.getTime() - keepClosedMs);
  // Reads outside a transaction, because a transaction would lock all runs in each pass.
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
  if (errors.length > 0) throw errors[0];
  return expired.length === BATCH || closed.length === BATCH;
}

/**
 * Ends the expired leases of each pool and returns the errors. A permanent error of one pool does not stop the loop; a
 * retryable error is thrown.
 */
async function expirePools(
  { repository, log }: ReclaimerParts,
  keys: readonly RunKey[],
): Promise<readonly unknown[]> {
  const errors: unknown[] = [];
  for (const key of keys) {
    try {
      await expirePool(repository, key);
    } catch (error) {
      // If the store is unavailable, the other pools would fail too.
      if (isRetryable(error)) throw error;
      const { tenant, runId: run_id } = key;
      log.error({ err: error, tenant, run_id }, 'failed to end the expired leases of a pool');
      errors.push(error);
    }
  }
  return errors;
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
