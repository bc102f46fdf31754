/** An order that was read. */
interface ReadOrder {
  readonly order_id: string;
}

/**
 * Decides which of the due orders that it read from the store a replica drives. The replica that placed an order has it
 * in memory and drives it; another one drives it only if it is still due some time after it was first read, because its
 * replica has died or has no capacity. The first read takes every order: a previous process may have left it. A state
 * machine: times are passed in, in milliseconds of a monotonic clock.
 */
export class OthersOrders {
  readonly #afterMs: number;
  /** When the due orders were first read, by id; undefined before the first read. */
  #firstRead: Map<string, number> | undefined;

  /** @param afterMs time that a replica has for the orders that it placed; zero without other replicas */
  constructor(afterMs: number) {
    this.#afterMs = afterMs;
  }

  /** Records all orders that are due, and returns those to drive. */
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

  /** Records that another replica drives an order, and has as much time again. */
  leave({ order_id: id }: ReadOrder, now: number): void {
    this.#firstRead?.set(id, now);
  }
}
