import { type Clock, NotFoundError, type RunKey } from '@writ/kernel';
import type { StoreDialect, TransactionOptions } from '@writ/store';
import type { EventTime, Outcome, PoolEvent } from '../../domain/pool/events.ts';
import type { Member, Pool, SlotChange } from '../../domain/pool/pool.ts';
import { reduce } from '../../domain/pool/reduce.ts';
import type { SpawnEvents } from '../../events.ts';
import { releasedMembers } from '../../store/members.ts';
import { PoolCache, poolMapKey } from '../../store/pool-cache.ts';
import { insertPool, loadPools, readOpenPools, savePools } from '../../store/pools.ts';
import { forgetAnswers } from '../../store/requests.ts';
import type { SpawnTransaction } from '../../store/schema.ts';
import type { SpawnStore } from '../../store/spawn-store.ts';
import type { StoredPool } from '../../store/stored-pool.ts';
import type { PauseFeed, PoolSlotChange } from './pause-feed.ts';

/** Dependencies of a {@link PoolRepository}. */
export interface PoolRepositoryParts {
  readonly store: SpawnStore;
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly events: SpawnEvents;
  /** Receives every committed slot change. */
  readonly feed: PauseFeed;
  /** Called after every commit that appended events to the outbox. */
  readonly onEvents: () => void;
}

/** The pools of spawn-budget. Changes are written in one transaction together with their events. */
export class PoolRepository {
  readonly #parts: PoolRepositoryParts;
  readonly #cache = new PoolCache();

  constructor(parts: PoolRepositoryParts) {
    this.#parts = parts;
  }

  /** Runs `work` on the pools of `runs` in one transaction, and resolves when the changes are durable. */
  async transaction<T>(
    runs: readonly RunKey[],
    work: (pools: PoolTransaction) => Promise<T>,
    options: TransactionOptions = {},
  ): Promise<T> {
    const { store, clock, leaseMs, events, feed, onEvents } = this.#parts;
    const { result, changes } = await store.transaction(
      async (trx) => {
        const time = { at: clock.now().getTime(), leaseMs };
        const pools = new PoolTransaction(trx, time, this.#cache);
        await pools.load(runs, store.dialect);
        const done = await work(pools);
        await pools.save(events);
        return { result: done, changes: pools.changes };
      },
      { ...options, runs: distinct(runs) },
    );
    if (changes.length > 0) {
      feed.publish(changes);
      if (changes.some(events.isEvent)) onEvents();
    }
    return result;
  }

  /** Returns the runs of a page of open pools, by tenant and run. */
  async openPools({ after, limit, minAgeMs }: OpenPoolsPage): Promise<RunKey[]> {
    const { store, clock } = this.#parts;
    const openedBefore = new Date(clock.now().getTime() - minAgeMs);
    return await readOpenPools(store.db, { after, limit, openedBefore });
  }
}

/** A page of open pools that were opened at least `minAgeMs` ago. */
interface OpenPoolsPage {
  readonly after: RunKey | undefined;
  readonly limit: number;
  readonly minAgeMs: number;
}

/** An agent and its pool as of a transaction. */
export interface MemberSnapshot extends RunKey {
  readonly pool: Pool;
  readonly member: Member;
  readonly at: Date;
}

/** The pools that one transaction works on. */
export class PoolTransaction {
  readonly trx: SpawnTransaction;
  /** The time that all changes of this transaction share. */
  readonly at: Date;
  /** When leases granted in this transaction begin, and how long they last. */
  readonly time: EventTime;
  /** Slot changes of the events that this transaction has applied. */
  readonly changes: PoolSlotChange[] = [];
  readonly #cache: PoolCache;
  readonly #before = new Map<string, StoredPool>();
  readonly #after = new Map<string, StoredPool>();
  /** Pools in which this transaction has already ended the expired leases. */
  readonly #current = new Set<string>();

  constructor(trx: SpawnTransaction, time: EventTime, cache: PoolCache) {
    this.trx = trx;
    this.at = new Date(time.at);
    this.time = time;
    this.#cache = cache;
  }

  /**
   * Loads the pools of `runs`. On PostgreSQL the store has locked all runs at the start of the transaction, so the row
   * locks of two transactions cannot deadlock.
   */
  async load(runs: readonly RunKey[], dialect: StoreDialect): Promise<void> {
    const options = { dialect, cache: this.#cache };
    for (const [tenant, runIds] of byTenant(runs)) {
      for (const stored of await loadPools(this.trx, tenant, runIds, options)) {
        this.#before.set(poolMapKey(stored), stored);
        this.#after.set(poolMapKey(stored), stored);
      }
    }
  }

  find(key: RunKey): StoredPool | undefined {
    return this.#after.get(poolMapKey(key));
  }

  /** Returns the pool of a run. @throws NotFoundError POOL_NOT_FOUND */
  get(key: RunKey): StoredPool {
    const stored = this.find(key);
    if (stored !== undefined) return stored;
    throw new NotFoundError('POOL_NOT_FOUND', `Run ${key.runId} has no pool.`, {
      run_id: key.runId,
    });
  }

  /** Loads the released agents among `instances`, because a pool is loaded without its released agents. */
  async loadReleased(key: RunKey, instances: readonly string[]): Promise<void> {
    const stored = this.get(key);
    const unknown = instances.filter((instance) => !stored.pool.members.has(instance));
    if (unknown.length === 0) return;
    const released = await releasedMembers(this.trx, key, unknown);
    const found = released.map((member) => [member.agent.instance, member] as const);
    for (const pools of [this.#before, this.#after]) {
      const { pool, ...rest } = pools.get(poolMapKey(key)) ?? stored;
      const members = new Map([...pool.members, ...found]);
      pools.set(poolMapKey(key), { ...rest, pool: { ...pool, members } });
    }
  }

  /** Inserts a new pool. */
  async open(pool: Omit<StoredPool, 'stamp'>): Promise<void> {
    const stored = { ...pool, stamp: this.#cache.newStamp() };
    await insertPool(this.trx, stored);
    this.#cache.put(this.trx, stored);
    this.#before.set(poolMapKey(stored), stored);
    this.#after.set(poolMapKey(stored), stored);
  }

  /**
   * Applies an event to a pool.
   * @throws the errors of `reduce`; NotFoundError POOL_NOT_FOUND
   */
  apply(key: RunKey, event: PoolEvent): { outcome: Outcome; changes: readonly SlotChange[] } {
    const stored = this.get(key);
    const { pool, outcome, changes } = reduce(stored.pool, event, this.time);
    this.#current.add(poolMapKey(key));
    const closedAt = pool.closed ? (stored.closedAt ?? this.at) : null;
    this.#after.set(poolMapKey(key), { ...stored, pool, closedAt });
    const { tenant, runId } = stored;
    for (const change of changes) this.changes.push({ tenant, runId, change, at: this.at });
    return { outcome, changes };
  }

  /** Ends the expired leases of a pool, and returns the pool. */
  current(key: RunKey): Pool {
    if (!this.#current.has(poolMapKey(key))) this.apply(key, { type: 'expire' });
    return this.get(key).pool;
  }

  /**
   * Returns the current state of an agent; later events of the transaction may change it.
   * @throws NotFoundError AGENT_NOT_FOUND
   */
  member(key: RunKey, instance: string): MemberSnapshot {
    const pool = this.current(key);
    const member = pool.members.get(instance);
    if (member === undefined)
      throw new NotFoundError('AGENT_NOT_FOUND', `The run's pool has no agent ${instance}.`, {
        agent_instance: instance,
      });
    return { tenant: key.tenant, runId: key.runId, pool, member, at: this.at };
  }

  /** Writes the changed pools and the events of their changes. */
  async save(events: SpawnEvents): Promise<void> {
    const changed = [...this.#after].flatMap(([key, after]) => {
      const before = this.#before.get(key);
      return before === undefined || before === after ? [] : [{ before, after }];
    });
    await savePools(this.trx, changed, this.#cache);
    for (const { before, after } of changed)
      if (after.pool.closed && !before.pool.closed) forgetAnswers(this.trx, after);
    for (const change of this.changes) await events.slotChanged(this.trx, this.get(change), change);
  }
}

/**
 * Returns the runs of a transaction without duplicates, because on PostgreSQL a transaction that names too many runs
 * overlaps no other transaction.
 */
function distinct(runs: readonly RunKey[]): readonly RunKey[] {
  return [...new Map(runs.map((key) => [poolMapKey(key), key])).values()];
}

/** Groups the runs by tenant, in the order of tenants. Most calls have one tenant and one run. */
function byTenant(
  runs: readonly RunKey[],
): (readonly [tenant: string, runIds: readonly string[]])[] {
  const [only] = runs;
  if (runs.length === 1 && only !== undefined) return [[only.tenant, [only.runId]]];
  const groups = [...Map.groupBy(runs, ({ tenant }) => tenant)];
  return groups
    .map(([tenant, keys]) => [tenant, [...new Set(keys.map(({ runId }) => runId))]] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
}
