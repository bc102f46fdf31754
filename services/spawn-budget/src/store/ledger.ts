import { type Clock, NotFoundError } from '@writ/kernel';
import type { StoreDialect } from '@writ/store';
import type { EventTime, Outcome, PoolEvent } from '../domain/pool/events.ts';
import type { Member, Pool, SlotChange } from '../domain/pool/pool.ts';
import { reduce } from '../domain/pool/reduce.ts';
import type { SpawnEvents } from '../events.ts';
import { releasedMembers } from './members.ts';
import type { Move } from './move.ts';
import type { PauseFeed } from './pause-feed.ts';
import { PoolCache, poolName } from './pool-cache.ts';
import type { StoredPool } from './pool-rows.ts';
import { insertPool, loadPools, savePools } from './pools.ts';
import type { PoolKey, SpawnStore, SpawnTransaction } from './spawn-store.ts';

/** What a {@link Ledger} works with. */
export interface LedgerParts {
  readonly store: SpawnStore;
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly events: SpawnEvents;
  /** Told of every change of slots once it is durable. */
  readonly feed: PauseFeed;
  /** Called after every commit that left events. */
  readonly nudge: () => void;
}

/** The pools of spawn-budget: each call is one transaction, in which a fact and its events are written together. */
export class Ledger {
  readonly #parts: LedgerParts;
  readonly #cache = new PoolCache();

  constructor(parts: LedgerParts) {
    this.#parts = parts;
  }

  /** Runs `work` on `pools` in one transaction; what it changes is durable when this resolves. */
  async transaction<T>(
    pools: readonly PoolKey[],
    work: (books: Books) => Promise<T>,
    options: { readonly background?: boolean } = {},
  ): Promise<T> {
    const { store, clock, leaseMs, events, feed, nudge } = this.#parts;
    const { result, books } = await store.transaction(async (trx) => {
      const opened = new Books(trx, { at: clock.now().getTime(), leaseMs }, this.#cache);
      await opened.load(pools, store.dialect);
      const done = await work(opened);
      await opened.save(events);
      return { result: done, books: opened };
    }, options);
    if (books.moves.length > 0) {
      feed.announce(books.moves);
      if (books.moves.some(events.tellsOf)) nudge();
    }
    return result;
  }
}

/** An agent as a transaction left it. */
export interface Standing extends PoolKey {
  readonly pool: Pool;
  readonly member: Member;
  readonly at: Date;
}

/** Some pools in the middle of a transaction. */
export class Books {
  readonly trx: SpawnTransaction;
  /** When everything in this transaction happens. */
  readonly at: Date;
  /** What moved so far. */
  readonly moves: Move[] = [];
  readonly #time: EventTime;
  readonly #cache: PoolCache;
  readonly #before = new Map<string, StoredPool>();
  readonly #after = new Map<string, StoredPool>();
  /** Pools in which the leases that are over have lapsed. */
  readonly #current = new Set<string>();

  constructor(trx: SpawnTransaction, time: EventTime, cache: PoolCache) {
    this.trx = trx;
    this.at = new Date(time.at);
    this.#time = time;
    this.#cache = cache;
  }

  /** When leases begin that are given in this transaction, and how long they run. */
  get time(): EventTime {
    return this.#time;
  }

  /** Loads pools; tenants one after the other, so that transactions lock in one order. */
  async load(pools: readonly PoolKey[], dialect: StoreDialect): Promise<void> {
    const options = { dialect, cache: this.#cache };
    for (const [tenant, runIds] of byTenant(pools)) {
      for (const stored of await loadPools(this.trx, tenant, runIds, options)) {
        this.#before.set(poolName(stored), stored);
        this.#after.set(poolName(stored), stored);
      }
    }
  }

  find(key: PoolKey): StoredPool | undefined {
    return this.#after.get(poolName(key));
  }

  /** @throws NotFoundError POOL_NOT_FOUND */
  get(key: PoolKey): StoredPool {
    const stored = this.find(key);
    if (stored !== undefined) return stored;
    throw new NotFoundError('POOL_NOT_FOUND', `The run ${key.runId} has no pool.`, {
      run_id: key.runId,
    });
  }

  /**
   * Brings back those among `instances` that were released: they are not loaded with their pool,
   * since they matter only to whoever names them.
   */
  async recall(key: PoolKey, instances: readonly string[]): Promise<void> {
    const stored = this.get(key);
    const unknown = instances.filter((instance) => !stored.pool.members.has(instance));
    if (unknown.length === 0) return;
    const released = await releasedMembers(this.trx, key, unknown);
    const found = released.map((member) => [member.agent.instance, member] as const);
    for (const books of [this.#before, this.#after]) {
      const { pool, ...rest } = books.get(poolName(key)) ?? stored;
      const members = new Map([...pool.members, ...found]);
      books.set(poolName(key), { ...rest, pool: { ...pool, members } });
    }
  }

  /** Records a new pool. */
  async open(pool: Omit<StoredPool, 'stamp'>): Promise<void> {
    const stored = { ...pool, stamp: this.#cache.newStamp() };
    await insertPool(this.trx, stored);
    this.#before.set(poolName(stored), stored);
    this.#after.set(poolName(stored), stored);
  }

  /**
   * Lets something happen to a pool.
   * @throws what reduce throws; NotFoundError POOL_NOT_FOUND
   */
  apply(key: PoolKey, event: PoolEvent): { outcome: Outcome; changes: readonly SlotChange[] } {
    const stored = this.get(key);
    const { pool, outcome, changes } = reduce(stored.pool, event, this.#time);
    this.#current.add(poolName(key));
    const closedAt = pool.closed ? (stored.closedAt ?? this.at) : null;
    this.#after.set(poolName(key), { ...stored, pool, closedAt });
    const { tenant, runId } = stored;
    for (const change of changes) this.moves.push({ tenant, runId, change, at: this.at });
    return { outcome, changes };
  }

  /** The pool as it stands now, lapsed leases let go. */
  look(key: PoolKey): Pool {
    if (!this.#current.has(poolName(key))) this.apply(key, { type: 'expire' });
    return this.get(key).pool;
  }

  /**
   * The agent as it stands now; call it last, for what comes later may change that.
   * @throws NotFoundError AGENT_NOT_FOUND
   */
  standing(key: PoolKey, instance: string): Standing {
    const pool = this.look(key);
    const member = pool.members.get(instance);
    if (member === undefined)
      throw new NotFoundError('AGENT_NOT_FOUND', `The run's pool has no agent ${instance}.`, {
        agent_instance: instance,
      });
    return { tenant: key.tenant, runId: key.runId, pool, member, at: this.at };
  }

  /** Writes what changed, and the events that tell of it. */
  async save(events: SpawnEvents): Promise<void> {
    const changed = [...this.#after].flatMap(([key, after]) => {
      const before = this.#before.get(key);
      return before === undefined || before === after ? [] : [{ before, after }];
    });
    await savePools(this.trx, changed, this.#cache);
    for (const move of this.moves) await events.slotChanged(this.trx, this.get(move), move);
  }
}

/** Tenants in order, with their runs; most calls have one of each. */
function byTenant(
  pools: readonly PoolKey[],
): (readonly [tenant: string, runIds: readonly string[]])[] {
  const [only] = pools;
  if (pools.length === 1 && only !== undefined) return [[only.tenant, [only.runId]]];
  const groups = [...Map.groupBy(pools, ({ tenant }) => tenant)];
  return groups
    .map(([tenant, keys]) => [tenant, [...new Set(keys.map(({ runId }) => runId))]] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
}
