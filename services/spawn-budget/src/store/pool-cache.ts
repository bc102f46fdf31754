import { ByteCache, newId, type RunKey } from '@writ/kernel';
import { RowCache } from '@writ/store';
import type { SpawnTransaction } from './schema.ts';
import type { StoredPool } from './stored-pool.ts';

/**
 * Caches each open pool as this process last wrote it (CO-2), so that a call need not read every agent of a run. Every
 * write gives the pool a new stamp. A transaction compares the stamps first, so that it never uses a cached pool that
 * another replica has changed or that was rolled back.
 */
export class PoolCache {
  readonly #pools = new ByteCache<StoredPool>({ name: 'pools', maxBytes: 8_000_000 });
  readonly #cache = new RowCache<StoredPool>();
  readonly #writer = newId('w');
  #writes = 0;

  /** Generates a stamp that is unique across processes. */
  newStamp(): string {
    this.#writes += 1;
    return `${this.#writer}-${this.#writes}`;
  }

  /** The pool as of this transaction; undefined if its stamp must be read. */
  current(trx: SpawnTransaction, key: RunKey): StoredPool | undefined {
    return this.#cache.get(trx, poolMapKey(key));
  }

  /** The pool if it was written with this stamp. */
  get(key: RunKey, stamp: string): StoredPool | undefined {
    const stored = this.#pools.get(poolMapKey(key));
    return stored?.stamp === stamp ? stored : undefined;
  }

  /** Caches a pool that this transaction has written, without its released agents. */
  put(trx: SpawnTransaction, stored: StoredPool): void {
    const name = poolMapKey(stored);
    this.#pools.delete(name);
    this.#cache.delete(trx, name);
    if (stored.pool.closed) return;
    const kept = withoutReleased(stored);
    this.#pools.set(name, kept);
    this.#cache.set(trx, name, kept);
  }
}

function withoutReleased(stored: StoredPool): StoredPool {
  const { pool } = stored;
  const released: string[] = [];
  for (const [instance, { state }] of pool.members)
    if (state === 'released') released.push(instance);
  // Most writes release no agent and need no copy of the map.
  if (released.length === 0) return stored;
  const members = new Map(pool.members);
  for (const instance of released) members.delete(instance);
  return { ...stored, pool: { ...pool, members } };
}

/** The key of a pool in maps. */
export function poolMapKey({ tenant, runId }: RunKey): string {
  return `${tenant}/${runId}`;
}
