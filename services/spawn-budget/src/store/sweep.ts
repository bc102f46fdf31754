import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { Ledger } from './ledger.ts';
import { lapsedPools } from './pools.ts';
import { prunePools } from './prune.ts';
import type { PoolKey, SpawnStore } from './spawn-store.ts';

/** What a {@link Sweep} works with. */
export interface SweepParts {
  readonly store: SpawnStore;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly log: Logger;
  /** Between two looks, ms. */
  readonly everyMs: number;
  /** How long closed pools are kept, ms. */
  readonly keepClosedMs: number;
}

/** Pools that one look takes on. */
const BATCH = 100;

/**
 * Gives the slots of dead agents to those in line when no call does it (SB-8), and deletes pools that
 * were closed long ago. Every call lets leases lapse as well, so this only wakes who waits.
 */
export class Sweep {
  readonly #parts: SweepParts;
  readonly #stopping = new AbortController();
  #loop: Promise<void> | undefined;

  constructor(parts: SweepParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** Resolves when the look under way is over. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { everyMs, log } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      let more = false;
      try {
        more = await this.#look();
      } catch (error) {
        log.warn({ err: error }, 'lapsed leases could not be swept; the next look tries again');
      }
      if (!more) await sleep(everyMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Answers whether a full batch was found, so that there may be more. */
  async #look(): Promise<boolean> {
    const { store, clock, keepClosedMs } = this.#parts;
    const now = clock.now();
    const lapsed = await lapsedPools(store.db, now, BATCH);
    for (const key of lapsed) {
      if (this.#stopping.signal.aborted) return false;
      await this.#expire(key);
    }
    const before = new Date(now.getTime() - keepClosedMs);
    const pruned = await store.transaction(async (trx) => prunePools(trx, before, BATCH), {
      background: true,
    });
    return lapsed.length === BATCH || pruned === BATCH;
  }

  async #expire(key: PoolKey): Promise<void> {
    await this.#parts.ledger.transaction(
      [key],
      async (books) => {
        if (books.find(key) !== undefined) books.apply(key, { type: 'expire' });
      },
      { background: true },
    );
  }
}
