import type { Priority } from '@writ/kernel';

/** A waiting item. */
export interface Waiting<T> {
  /** Flow to which the item is charged: an agent of a run. */
  readonly flow: string;
  readonly weight: Priority;
  readonly item: T;
}

interface Tagged<T> extends Waiting<T> {
  readonly start: number;
}

/** Divisible by every weight, so that all tags are integers. */
const SCALE = 8;

/**
 * Start-time fair queue (SUP-3). Each backlogged flow is served in proportion to its weight; an
 * idle flow accumulates no credit. Weight 0 (BACKGROUND) is served only when no other flow waits.
 * Items of one flow, and items with equal tags, are served in arrival order.
 */
export class FairQueue<T> {
  /** Ordered by start tag. */
  #weighted: Tagged<T>[] = [];
  #background: Waiting<T>[] = [];
  /** Finish tag of the last item of each flow, as long as it is ahead of the virtual time. */
  readonly #finish = new Map<string, number>();
  #virtualTime = 0;

  /** Number of waiting items. */
  get size(): number {
    return this.#weighted.length + this.#background.length;
  }

  /** Sum of the weights of all waiting flows; BACKGROUND counts as 0. */
  get weight(): number {
    const flows = new Map(this.#weighted.map(({ flow, weight }) => [flow, weight]));
    return [...flows.values()].reduce((sum: number, weight) => sum + weight, 0);
  }

  /** Adds an item. */
  add(waiting: Waiting<T>): void {
    if (waiting.weight === 0) {
      this.#background.push(waiting);
      return;
    }
    const start = Math.max(this.#virtualTime, this.#finish.get(waiting.flow) ?? 0);
    this.#finish.set(waiting.flow, start + SCALE / waiting.weight);
    const previous = this.#weighted.findLastIndex((other) => other.start <= start);
    this.#weighted.splice(previous + 1, 0, { ...waiting, start });
  }

  /**
   * Removes and returns the next item; undefined when the queue is empty. Clears the finish tags when
   * no weighted item waits.
   */
  next(): T | undefined {
    const first = this.#weighted.shift();
    if (first === undefined) {
      this.#finish.clear();
      return this.#background.shift()?.item;
    }
    this.#virtualTime = first.start;
    for (const [flow, finish] of this.#finish) {
      if (finish <= this.#virtualTime) this.#finish.delete(flow);
    }
    return first.item;
  }

  /** Removes an item before it is served. Returns whether it was waiting. */
  remove(item: T): boolean {
    const size = this.size;
    this.#weighted = this.#weighted.filter((waiting) => waiting.item !== item);
    this.#background = this.#background.filter((waiting) => waiting.item !== item);
    return this.size < size;
  }
}
