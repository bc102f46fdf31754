import { newId } from '@writ/kernel';
import { RowCache } from '@writ/store';
import type { StoredPool } from './pool-rows.ts';
import type { PoolKey, SpawnTransaction } from './spawn-store.ts';

/** Pools that are kept at most; the one that was used longest ago goes first. */
const MAX_POOLS = 1_000;

/**
 * Pools as this process last wrote them, so that a call need not read all agents of a run again. A
 * pool is known by its stamp, which every write makes anew and every transaction reads first: what
 * another replica wrote, or what was undone, is never taken for the present.
 */
export class PoolCache {
  readonly #pools = new Map<string, StoredPool>();
  readonly #cache = new RowCache<StoredPool>();
  readonly #writer = newId('w');
  #writes = 0;

  /** A stamp that no other write has, in this process or another. */
  newStamp(): string {
    this.#writes += 1;
    return `${this.#writer}-${this.#writes}`;
  }

  /** The pool as it stands in this transaction; undefined when at least its stamp has to be read. */
  recall(trx: SpawnTransaction, key: PoolKey): StoredPool | undefined {
    return this.#cache.get(trx, poolName(key));
  }

  /** The pool, when it was written under this very stamp. */
  get(key: PoolKey, stamp: string): StoredPool | undefined {
    const name = poolName(key);
    const stored = this.#pools.get(name);
    if (stored?.stamp !== stamp) return undefined;
    this.#pools.delete(name);
    this.#pools.set(name, stored);
    return stored;
  }

  /** Keeps a pool that this transaction has written; released agents are left to the database. */
  put(trx: SpawnTransaction, stored: StoredPool): void {
    const name = poolName(stored);
    this.#pools.delete(name);
    this.#cache.delete(trx, name);
    if (stored.pool.closed) return;
    const kept = withoutReleased(stored);
    this.#pools.set(name, kept);
    this.#cache.set(trx, name, kept);
    const [oldest] = this.#pools.keys();
    if (this.#pools.size > MAX_POOLS && oldest !== undefined) this.#pools.delete(oldest);
  }
}

function withoutReleased(stored: StoredPool): StoredPool {
  const { pool } = stored;
  const released: string[] = [];
  for (const [instance, { state }] of pool.members)
    if (state === 'released') released.push(instance);
  // Most writes release nobody, and a map that nobody changes need not be copied.
  if (released.length === 0) return stored;
  const members = new Map(pool.members);
  for (const instance of released) members.delete(instance);
  return { ...stored, pool: { ...pool, members } };
}

/** The name of a pool in maps. */
export function poolName({ tenant, runId }: PoolKey): string {
  return `${tenant}/${runId}`;
}
