import { AsyncLocalStorage } from 'node:async_hooks';
import { WakeableLoop } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import type { HaltPayload } from '../../domain/order/order-payloads.ts';
import {
  dueTerms,
  HALT_ORDERS,
  isHaltOrder,
  isOrderKind,
  RUNNING_ORDERS,
} from '../../domain/order/order-rules.ts';
import { OthersOrders } from '../../domain/order/others-orders.ts';
import type { OrderRow } from '../../store/change/commit-notes.ts';
import { dueOrders, nextDueAt } from '../../store/orders.ts';
import { PLACED_ORDERS } from '../../store/supervisor-store.ts';
import { OrderDriver } from './order-driver.ts';
import { StartAdmission } from './start-admission.ts';

const MAX_AT_ONCE = 64;
/** Maximum interval between two reads of the store, so that orders placed by another process are found. */
const MAX_SLEEP_MS = 5_000;
/**
 * Delay after a hint of another replica before its orders are read, and time for which an order of another replica must
 * stay due before this replica drives it, ms.
 */
const OTHERS_AFTER_MS = 500;

/** An order to drive. */
interface OfferedOrder {
  readonly order: OrderRow;
  /**
   * Whether this replica retries the order soon if another replica drives its key. True if this replica placed the
   * order or failed to drive the last order of its key, and for every order of a halt, but false for every start. If
   * false, this replica leaves the order to the other replica.
   */
  readonly isOwn: boolean;
}

/**
 * Executes the orders of the store with back-off, each from its recorded step, including those that a previous process
 * left unfinished. Drives one order at a time per run, in the order of placement, so that the end of a run is never
 * driven before its start. Halt orders do not wait for other orders; orders that start something wait while their run
 * is halted (SV-9). Orders of runs that have started take precedence over starts, which are queued while too many runs
 * are active (BD-5).
 */
export class OrderEngine {
  readonly #context: SupervisorContext;
  readonly #driver: OrderDriver;
  readonly #starts: StartAdmission;
  readonly #loop: WakeableLoop;
  /** The orders that are driven, by key. */
  readonly #driving = new Map<string, { readonly id: string; readonly ended: Promise<void> }>();
  // Runs functions outside of the async context of the request that places an order, so that the engine does not
  // inherit the span of the request.
  readonly #outside = AsyncLocalStorage.snapshot();
  /** Orders that wait for another order of the same key. */
  readonly #waiting = new Map<string, OfferedOrder[]>();
  /**
   * Keys whose last order was not completed, because it failed, another replica drives the key, or an earlier order of
   * the key was driven first. The order precedes later orders of the key, so the store must be read.
   */
  readonly #failedKeys = new Set<string>();
  /** Ids of the orders that this process has placed since the store was last read and that are not in memory. */
  #unread = new Set<string>();
  readonly #othersOrders: OthersOrders;
  readonly #othersStarts: OthersOrders;
  /** Whether the store may contain due orders that are not in memory. */
  #mustRead = true;
  #unsubscribe: (() => void) | undefined;
  #othersTimer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(context: SupervisorContext) {
    this.#context = context;
    this.#driver = new OrderDriver(context);
    this.#starts = new StartAdmission(context, (order) => this.#driveStart(order));
    const othersAfterMs = context.store.replicas.shared ? OTHERS_AFTER_MS : 0;
    this.#othersOrders = new OthersOrders(othersAfterMs);
    this.#othersStarts = new OthersOrders(othersAfterMs);
    this.#loop = new WakeableLoop({
      pass: () => this.#startDue(),
      intervalMs: MAX_SLEEP_MS,
      onError: (error) =>
        context.telemetry.log.error({ err: error }, 'failed to read orders; retrying'),
    });
  }

  /** Starts with the orders that are due. */
  start(): void {
    const { store } = this.#context;
    this.#starts.start();
    const unsubscribe = store.changes.subscribe('orders', () => this.#loop.wake());
    const stopListening = store.onOrders((orders) => this.#accept(orders));
    const unsubscribeHints = store.replicas.onHint(PLACED_ORDERS, () => this.#readOthersSoon());
    this.#unsubscribe = () => {
      unsubscribe();
      stopListening();
      unsubscribeHints();
      clearTimeout(this.#othersTimer);
    };
    this.#loop.start();
  }

  /** Starts no further step; resolves when the steps in flight have ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#driver.stop();
    this.#unsubscribe?.();
    this.#starts.stop();
    await this.#loop.stop();
    await Promise.all([...this.#driving.values()].map(({ ended }) => ended));
  }

  /**
   * Accepts orders that this process has just placed, without reading them from the store (CO-1). If an older order of
   * the key may be open, or too many orders are in progress, reads the store instead, which has all orders in sequence.
   */
  #accept(orders: readonly OrderRow[]): void {
    for (const order of orders) {
      if (isStart(order)) {
        // A start is the first order of its run, so the store has no older order.
        this.#outside(() => this.#starts.accept(order));
        continue;
      }
      const isFull = this.#driving.size >= MAX_AT_ONCE && !isHalt(order);
      if (isFull || this.#failedKeys.has(keyOf(order))) this.#mustRead = true;
      if (this.#mustRead) this.#unread.add(order.order_id);
      else this.#outside(() => this.#offer({ order, isOwn: true }));
    }
    if (this.#mustRead) this.#loop.wake();
  }

  /**
   * Schedules one read of the orders of other replicas; hints that arrive before this read schedule no further read.
   */
  #readOthersSoon(): void {
    if (this.#isStopped) return;
    this.#othersTimer ??= setTimeout(() => {
      this.#othersTimer = undefined;
      this.#loop.wake();
    }, OTHERS_AFTER_MS).unref();
  }

  /** Starts an order, or queues it behind the order of the same key that is being driven. */
  #offer(offered: OfferedOrder): void {
    const { order } = offered;
    const key = keyOf(order);
    const current = this.#driving.get(key);
    if (current === undefined) {
      this.#start(key, offered);
      return;
    }
    const waiting = this.#waiting.get(key) ?? [];
    const known = [current.id, ...waiting.map((other) => other.order.order_id)];
    if (!known.includes(order.order_id)) this.#waiting.set(key, [...waiting, offered]);
  }

  /** Starts the due orders; returns the time until the next order is due, ms. */
  async #startDue(): Promise<number> {
    const { store, clock, config } = this.#context;
    const now = clock.now();
    const terms = dueTerms(config, now);
    const placed = this.#unread;
    this.#unread = new Set();
    const isOwn = (order: OrderRow) =>
      placed.has(order.order_id) ||
      this.#failedKeys.has(keyOf(order)) ||
      this.#context.starts.isWaiting(order);
    for (const order of await dueOrders(store.urgentDb, terms, MAX_AT_ONCE * 4, HALT_ORDERS)) {
      this.#offer({ order, isOwn: true });
    }
    const due = await dueOrders(store.db, terms, MAX_AT_ONCE * 4, RUNNING_ORDERS);
    this.#mustRead = due.length === MAX_AT_ONCE * 4;
    for (const order of this.#ours(due, isOwn, this.#othersOrders)) {
      if (this.#driving.size >= MAX_AT_ONCE) {
        this.#mustRead = true;
        break;
      }
      this.#offer({ order, isOwn: isOwn(order) });
    }
    const hasMore = await this.#starts.read(terms, (starts) =>
      this.#ours(starts, isOwn, this.#othersStarts),
    );
    if (hasMore) this.#mustRead = true;
    const next = await nextDueAt(store.db, now);
    const dueInMs = next === undefined ? MAX_SLEEP_MS : next.getTime() - now.getTime();
    return Math.min(MAX_SLEEP_MS, Math.max(1, dueInMs));
  }

  /** Returns the due orders that this replica drives. If there are other due orders, schedules another read. */
  #ours(
    due: readonly OrderRow[],
    isOwn: (order: OrderRow) => boolean,
    others: OthersOrders,
  ): readonly OrderRow[] {
    const ours = others.ready(due, isOwn, performance.now());
    if (ours.length < due.length) this.#readOthersSoon();
    return ours;
  }

  /** Drives an order; no other order of its key is driven by this replica. */
  #start(key: string, { order, isOwn }: OfferedOrder): void {
    if (this.#isStopped) return;
    this.#failedKeys.delete(key);
    const ended = this.#driver.drive(key, order).then((outcome) => {
      if (outcome === 'claimed' && !isOwn) this.#leave(order);
      else if (outcome !== 'driven') this.#failedKeys.add(key);
      this.#driving.delete(key);
      this.#next(key);
    });
    this.#driving.set(key, { id: order.order_id, ended });
  }

  /** Leaves an order to the replica that has claimed it, and reads it again later. */
  #leave(order: OrderRow): void {
    const others = isStart(order) ? this.#othersStarts : this.#othersOrders;
    others.leave(order, performance.now());
    this.#readOthersSoon();
  }

  /** Drives a start that the start queue has admitted; resolves when its attempt has ended. */
  async #driveStart(order: OrderRow): Promise<void> {
    const key = keyOf(order);
    const isFree = !this.#driving.has(key);
    this.#outside(() => this.#offer({ order, isOwn: false }));
    // A start that waits behind another order belongs to a run that is ending.
    if (isFree) await this.#driving.get(key)?.ended;
  }

  /** Starts the next order that waits for the key, unless the last order of the key failed. */
  #next(key: string): void {
    const [next, ...others] = this.#waiting.get(key) ?? [];
    this.#waiting.delete(key);
    if (this.#failedKeys.has(key)) this.#mustRead = true;
    else if (next !== undefined) {
      if (others.length > 0) this.#waiting.set(key, others);
      this.#start(key, next);
    }
    if (this.#mustRead) this.#loop.wake();
  }
}

/** Returns the key of an order: its run or its halt. Orders of one key are driven one after the other. */
function keyOf(order: OrderRow): string {
  if (!isHalt(order)) return `${order.tenant}/${order.run_id}`;
  return `halt ${(JSON.parse(order.payload) as HaltPayload).haltId}`;
}

function isStart({ kind }: OrderRow): boolean {
  return kind === 'start_run';
}

function isHalt({ kind }: OrderRow): boolean {
  return isOrderKind(kind) && isHaltOrder(kind);
}
