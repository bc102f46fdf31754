import { type Clock, NotFoundError } from '@writ/kernel';
import type { EventTime, Outcome, PoolEvent } from '../domain/pool/events.ts';
import type { Member, Pool, SlotChange } from '../domain/pool/pool.ts';
import { reduce } from '../domain/pool/reduce.ts';
import type { SpawnEvents } from '../events.ts';
import type { Move } from './move.ts';
import type { PauseFeed } from './pause-feed.ts';
import type { StoredPool } from './pool-rows.ts';
import { insertPool, loadPools, type PoolRequest, poolKey, savePools } from './pools.ts';
import type { PoolKey, SpawnStore, SpawnTransaction } from './spawn-store.ts';

/** What a {@link Ledger} works with. */
export interface LedgerParts {
  readonly store: SpawnStore;
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly events: SpawnEvents;
  /** Told of every change of slots once it is durable. */
  readonly feed: PauseFeed;
  /** Called after every commit that may have left events. */
  readonly nudge: () => void;
}

/** The pools of spawn-budget: each call is one transaction, in which a fact and its events are written together. */
export class Ledger {
  readonly #parts: LedgerParts;

  constructor(parts: LedgerParts) {
    this.#parts = parts;
  }

  /** Runs `work` on `pools` in one transaction; what it changes is durable when this resolves. */
  async transaction<T>(
    pools: readonly PoolRequest[],
    work: (books: Books) => Promise<T>,
    options: { readonly background?: boolean } = {},
  ): Promise<T> {
    const { store, clock, leaseMs, events, feed, nudge } = this.#parts;
    const { result, books } = await store.transaction(async (trx) => {
      const opened = new Books(trx, { at: clock.now().getTime(), leaseMs });
      await opened.load(pools, store.dialect);
      const done = await work(opened);
      await opened.save(events);
      return { result: done, books: opened };
    }, options);
    if (books.moves.length > 0) {
      feed.announce(books.moves);
      nudge();
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
  readonly #before = new Map<string, StoredPool>();
  readonly #after = new Map<string, StoredPool>();

  constructor(trx: SpawnTransaction, time: EventTime) {
    this.trx = trx;
    this.at = new Date(time.at);
    this.#time = time;
  }

  /** When leases begin that are given in this transaction, and how long they run. */
  get time(): EventTime {
    return this.#time;
  }

  /** Loads pools; tenants one after the other, so that transactions lock in one order. */
  async load(
    pools: readonly PoolRequest[],
    dialect: Parameters<typeof loadPools>[3],
  ): Promise<void> {
    const byTenant = Map.groupBy(pools, ({ tenant }) => tenant);
    for (const [tenant, requests] of [...byTenant].sort(([a], [b]) => (a < b ? -1 : 1))) {
      for (const stored of await loadPools(this.trx, tenant, requests, dialect)) {
        this.#before.set(poolKey(stored), stored);
        this.#after.set(poolKey(stored), stored);
      }
    }
  }

  find(key: PoolKey): StoredPool | undefined {
    return this.#after.get(poolKey(key));
  }

  /** @throws NotFoundError POOL_NOT_FOUND */
  get(key: PoolKey): StoredPool {
    const stored = this.find(key);
    if (stored !== undefined) return stored;
    throw new NotFoundError('POOL_NOT_FOUND', `The run ${key.runId} has no pool.`, {
      run_id: key.runId,
    });
  }

  /** Records a new pool. */
  async open(stored: StoredPool): Promise<void> {
    await insertPool(this.trx, stored);
    this.#before.set(poolKey(stored), stored);
    this.#after.set(poolKey(stored), stored);
  }

  /**
   * Lets something happen to a pool.
   * @throws what reduce throws; NotFoundError POOL_NOT_FOUND
   */
  apply(key: PoolKey, event: PoolEvent): { outcome: Outcome; changes: readonly SlotChange[] } {
    const stored = this.get(key);
    const { pool, outcome, changes } = reduce(stored.pool, event, this.#time);
    const closedAt = pool.closed ? (stored.closedAt ?? this.at) : null;
    this.#after.set(poolKey(key), { ...stored, pool, closedAt });
    const { tenant, runId } = stored;
    for (const change of changes) this.moves.push({ tenant, runId, change, at: this.at });
    return { outcome, changes };
  }

  /** The pool as it stands now, lapsed leases let go. */
  look(key: PoolKey): Pool {
    this.apply(key, { type: 'expire' });
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
    await savePools(this.trx, changed);
    for (const move of this.moves) await events.slotChanged(this.trx, this.get(move), move);
  }
}
