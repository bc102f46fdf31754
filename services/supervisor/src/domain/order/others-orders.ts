/** An order that this replica has read from the store. */
interface ReadOrder {
  readonly order_id: string;
}

/**
 * Decides which due orders of the store this replica executes. The replica that placed an order executes it from
 * memory. Another replica executes the order only if the order is still due `afterMs` after that replica first read it:
 * the replica that placed the order may then have died or have no capacity. The first read returns every order, because
 * a previous process may have left it. The class reads no clock: callers pass times in milliseconds of a monotonic
 * clock.
 */
export class OthersOrders {
  readonly #afterMs: number;
  /** When the due orders were first read, by id; undefined before the first read. */
  #firstRead: Map<string, number> | undefined;

  /** @param afterMs time that the replica that placed an order has to execute it, ms; zero without other replicas */
  constructor(afterMs: number) {
    this.#afterMs = afterMs;
  }

  /** Records all due orders, and returns those that this replica executes. */
  ready<O extends ReadOrder>(due: readonly O[], isOwn: (order: O) => boolean, now: number): O[] {
    const before = this.#firstRead;
    const firstRead = new Map<string, number>();
    for (const { order_id: id } of due) {
      firstRead.set(id, before === undefined ? Number.NEGATIVE_INFINITY : (before.get(id) ?? now));
    }
    this.#firstRead = firstRead;
    return due.filter(
      (order) => isOwn(order) || now - (firstRead.get(order.order_id) ?? now) >= this.#afterMs,
    );
  }

  /** Records that another replica executes an order; this replica waits `afterMs` again. */
  leave({ order_id: id }: ReadOrder, now: number): void {
    this.#firstRead?.set(id, now);
  }
}
