/**
 * The event queue of a discrete simulation: runs actions in order of their time, and actions of the same time in order
 * of insertion.
 */
export class EventQueue {
  readonly #heap: { readonly at: number; readonly order: number; readonly act: () => void }[] = [];
  #order = 0;
  #now = 0;

  /** Simulated milliseconds since the beginning. */
  get now(): number {
    return this.#now;
  }

  /** Schedules `act` to run `afterMs` later. */
  after(afterMs: number, act: () => void): void {
    this.#order += 1;
    const heap = this.#heap;
    heap.push({ at: this.#now + afterMs, order: this.#order, act });
    for (let index = heap.length - 1; index > 0; ) {
      const parent = (index - 1) >> 1;
      if (!this.#isBefore(index, parent)) return;
      this.#swap(index, parent);
      index = parent;
    }
  }

  /** Runs all actions that are due by `untilMs`. */
  runUntil(untilMs: number): void {
    for (
      let [first] = this.#heap;
      first !== undefined && first.at <= untilMs;
      [first] = this.#heap
    ) {
      this.#removeFirst();
      this.#now = first.at;
      first.act();
    }
    this.#now = untilMs;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    heap[0] = last;
    for (let index = 0; ; ) {
      let least = index;
      for (const child of [2 * index + 1, 2 * index + 2]) {
        if (child < heap.length && this.#isBefore(child, least)) least = child;
      }
      if (least === index) return;
      this.#swap(index, least);
      index = least;
    }
  }

  #isBefore(one: number, other: number): boolean {
    const [a, b] = [this.#heap[one], this.#heap[other]];
    if (a === undefined || b === undefined) return false;
    return a.at < b.at || (a.at === b.at && a.order < b.order);
  }

  #swap(one: number, other: number): void {
    const [a, b] = [this.#heap[one], this.#heap[other]];
    if (a === undefined || b === undefined) return;
    this.#heap[one] = b;
    this.#heap[other] = a;
  }
}
