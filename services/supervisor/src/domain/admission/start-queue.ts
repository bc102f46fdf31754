import { OverloadedError } from '@writ/kernel';
import { ActiveLimit, average } from './active-limit.ts';
import { TenantLoad } from './tenant-load.ts';

/** Limits of the runs that are waiting to start. */
export interface QueueLimits {
  readonly maxQueuedRuns: number;
  readonly maxQueuedRunsPerTenant: number;
}

/** The start of a run. */
export interface StartOrder {
  readonly order_id: string;
  readonly tenant: string;
  readonly run_id: string;
}

/**
 * Interval at which one start is admitted as a probe while the limit of active runs is reached, ms. The duration of the
 * probe shows whether the load has decreased.
 */
export const PROBE_MS = 250;
/** Maximum number of starts in progress, so that orders that end runs always have capacity. */
const MAX_STARTING = 16;
/** Within the configured limits, a tenant may have at least this many waiting starts under any load. */
const MIN_QUEUED_RUNS = 1;
/** Assumed duration of a run until the first run has ended, ms. */
const INITIAL_RUN_MS = 1_000;
const RUN_WEIGHT = 0.1;
/** Limits of the delay after which a rejected start is retried, ms. */
const MIN_RETRY_MS = 100;
const MAX_RETRY_MS = 30_000;
/** Maximum number of tenants whose load is kept; the load of an evicted tenant is reset. */
export const MAX_TENANTS = 10_000;

interface Activity {
  readonly tenant: string;
  readonly since: number;
}

/**
 * Queues starts while too many runs are active, and limits how many starts may wait (BD-5). A state machine: times are
 * passed in, in milliseconds of a monotonic clock.
 *
 * A start is admitted while the number of active runs is below the {@link ActiveLimit}, and at the limit as a probe
 * every {@link PROBE_MS}; at most {@link MAX_STARTING} starts are in progress. The next start is taken from the tenant
 * with the fewest active runs.
 *
 * Within the configured limits, each tenant may always have waiting starts up to a quarter of the limit of active runs,
 * but at least one, so that an accepted run waits only a fraction of its duration. Beyond that, the {@link TenantLoad}
 * of the tenant decides: a burst may fill the queue up to the configured limits, and a start that follows the end of a
 * run is accepted, so that callers that keep a constant number of runs in flight need not retry.
 */
export class StartQueue<Order extends StartOrder> {
  readonly #limits: QueueLimits;
  readonly #limit = new ActiveLimit();
  /** By order id, oldest first. */
  readonly #waiting = new Map<string, Order>();
  /** By order id. */
  readonly #starting = new Map<string, Order>();
  /** By tenant and run. */
  readonly #active = new Map<string, Activity>();
  /** Reserved capacity for starts that are being recorded, by tenant. */
  readonly #reserved = new Map<string, number>();
  /** By tenant, least recently used first. */
  readonly #loads = new Map<string, TenantLoad>();
  #lastStartAt = Number.NEGATIVE_INFINITY;
  #runMs: number | undefined;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  /** The number of starts that wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** The number of active runs, including those that are being started. */
  get active(): number {
    let starting = 0;
    for (const order of this.#starting.values()) if (!this.#active.has(keyOf(order))) starting += 1;
    return this.#active.size + starting;
  }

  /** The limit of active runs now. */
  get limit(): number {
    return this.#limit.current;
  }

  /**
   * Reserves capacity for a start that is about to be recorded. Returns a function that releases the capacity; call the
   * function after the order has been added, or if the order was not placed.
   * @throws OverloadedError START_QUEUE_FULL with `retry_after_ms`, naming limit and setting
   */
  reserve(tenant: string, now: number): () => void {
    this.#assertCapacity(tenant, now);
    this.#assertNotGrowing(tenant, now);
    this.#reserved.set(tenant, (this.#reserved.get(tenant) ?? 0) + 1);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      const left = (this.#reserved.get(tenant) ?? 1) - 1;
      if (left === 0) this.#reserved.delete(tenant);
      else this.#reserved.set(tenant, left);
    };
  }

  /** Whether a start waits. */
  isWaiting({ order_id: id }: Pick<Order, 'order_id'>): boolean {
    return this.#waiting.has(id);
  }

  /** Adds a start, unless it waits already or is in progress. */
  add(order: Order): void {
    const { order_id: id } = order;
    if (this.#waiting.has(id) || this.#starting.has(id)) return;
    this.#waiting.set(id, order);
  }

  /** Replaces the waiting starts with the waiting starts in the store, because other replicas may have taken starts. */
  replace(orders: readonly Order[]): void {
    this.#waiting.clear();
    for (const order of orders) this.add(order);
  }

  /** Takes the next start from the queue, if a start is currently permitted. */
  next(now: number): Order | undefined {
    if (this.#waiting.size === 0 || this.#starting.size >= MAX_STARTING) return undefined;
    const isProbe = now - this.#lastStartAt >= PROBE_MS;
    if (this.active >= this.limit && !isProbe) return undefined;
    const order = this.#nextStart();
    if (order === undefined) return undefined;
    this.#waiting.delete(order.order_id);
    this.#starting.set(order.order_id, order);
    this.#lastStartAt = now;
    return order;
  }

  /** Adapts the limit to a start that has succeeded after `ms`. */
  observe(ms: number, now: number): void {
    this.#limit.observe(ms, this.active, now);
  }

  /** Records that a start that {@link next} returned is no longer in progress. */
  started({ order_id: id }: Order): void {
    this.#starting.delete(id);
  }

  /**
   * Records whether a run is active: it has started, has not ended, does not wait for a person, a signal or a timer,
   * and is not parked by a halt.
   */
  setActive(tenant: string, runId: string, isActive: boolean, now: number): void {
    const key = keyOf({ tenant, run_id: runId });
    const before = this.#active.get(key);
    if (isActive) {
      if (before === undefined) this.#active.set(key, { tenant, since: now });
    } else if (before !== undefined) {
      this.#active.delete(key);
      this.#loads.get(tenant)?.ended();
      this.#runMs = average(this.#runMs, now - before.since, RUN_WEIGHT);
    }
  }

  /** Replaces the active runs with the active runs in the store. */
  replaceActive(runs: Iterable<Omit<StartOrder, 'order_id'>>, now: number): void {
    const before = new Map(this.#active);
    this.#active.clear();
    for (const run of runs) {
      const key = keyOf(run);
      this.#active.set(key, before.get(key) ?? { tenant: run.tenant, since: now });
    }
  }

  #assertCapacity(tenant: string, now: number): void {
    const { maxQueuedRuns, maxQueuedRunsPerTenant } = this.#limits;
    const own = this.#waitingOf(tenant);
    if (own >= maxQueuedRunsPerTenant) {
      this.#loadOf(tenant).rejected(now);
      const setting = 'WRIT_TENANT_MAX_QUEUED_RUNS';
      throw this.#full(`Tenant ${tenant} has`, setting, own, maxQueuedRunsPerTenant);
    }
    const reserved = [...this.#reserved.values()].reduce((sum, count) => sum + count, 0);
    const all = this.#waiting.size + reserved;
    if (all >= maxQueuedRuns) {
      throw this.#full('There are', 'WRIT_MAX_QUEUED_RUNS', all, maxQueuedRuns);
    }
  }

  /**
   * Rejects a start if the load of the tenant grows beyond the capacity. Each tenant is checked separately, because the
   * starts of one tenant must not block the starts of another.
   */
  #assertNotGrowing(tenant: string, now: number): void {
    const waiting = this.#waitingOf(tenant);
    const inFlight = waiting + (this.#activeByTenant().get(tenant) ?? 0);
    const load = this.#loadOf(tenant);
    const most = Math.max(MIN_QUEUED_RUNS, Math.floor(this.limit / 4));
    if (load.accepts({ waiting, inFlight, most }, now)) return;
    throw this.#full(`Tenant ${tenant} has`, 'WRIT_TENANT_MAX_QUEUED_RUNS', waiting, most);
  }

  #loadOf(tenant: string): TenantLoad {
    const load = this.#loads.get(tenant) ?? new TenantLoad();
    this.#loads.delete(tenant);
    this.#loads.set(tenant, load);
    const [oldest] = this.#loads.keys();
    if (this.#loads.size > MAX_TENANTS && oldest !== undefined) this.#loads.delete(oldest);
    return load;
  }

  #full(whose: string, setting: string, used: number, limit: number): OverloadedError {
    const perRunMs = (this.#runMs ?? INITIAL_RUN_MS) / Math.max(1, this.active);
    const waitMs = Math.ceil(Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, perRunMs * used)));
    return new OverloadedError(
      'START_QUEUE_FULL',
      `${whose} ${used} runs that are waiting to start, and at most ${limit} may wait now (${setting}, less under sustained load); retry in ${waitMs} ms.`,
      { setting, used: String(used), limit: String(limit), retry_after_ms: String(waitMs) },
    );
  }

  #waitingOf(tenant: string): number {
    let count = this.#reserved.get(tenant) ?? 0;
    for (const order of this.#waiting.values()) if (order.tenant === tenant) count += 1;
    return count;
  }

  /**
   * Returns the oldest start of the tenant with the fewest active runs; if several tenants have the fewest, the oldest
   * of their starts.
   */
  #nextStart(): Order | undefined {
    const heads = new Map<string, Order>();
    for (const order of this.#waiting.values()) {
      if (!heads.has(order.tenant)) heads.set(order.tenant, order);
    }
    if (heads.size <= 1) return heads.values().next().value;
    const active = this.#activeByTenant();
    let found: Order | undefined;
    for (const order of heads.values()) {
      const isFewer =
        found === undefined || (active.get(order.tenant) ?? 0) < (active.get(found.tenant) ?? 0);
      if (isFewer) found = order;
    }
    return found;
  }

  #activeByTenant(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    const add = (tenant: string) => counts.set(tenant, (counts.get(tenant) ?? 0) + 1);
    for (const { tenant } of this.#active.values()) add(tenant);
    for (const order of this.#starting.values()) {
      if (!this.#active.has(keyOf(order))) add(order.tenant);
    }
    return counts;
  }
}

function keyOf({ tenant, run_id: runId }: Omit<StartOrder, 'order_id'>): string {
  return `${tenant}/${runId}`;
}
