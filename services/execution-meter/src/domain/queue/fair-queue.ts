import type { Priority } from '@writ/kernel';

/** Somebody who waits. */
export interface Waiting<T> {
  /** Whose share it is taken from: an agent of a run. */
  readonly flow: string;
  readonly weight: Priority;
  readonly item: T;
}

interface Tagged<T> extends Waiting<T> {
  readonly start: number;
}

/** Divisible by every weight, so that all tags are whole numbers. */
const SCALE = 8;

/**
 * Who is served next when there is not enough for all (SUP-3): start-time fair queueing. Each flow is
 * served in proportion to its weight while it has something waiting; nobody saves up a share by being
 * idle. Weight 0 (BACKGROUND) is served only when nobody else waits. Within a flow, and between equal
 * tags, first come, first served.
 */
export class FairQueue<T> {
  /** In order of start tags. */
  #weighted: Tagged<T>[] = [];
  #background: Waiting<T>[] = [];
  /** Where each flow's next start tag begins, while that lies ahead of the virtual time. */
  readonly #finish = new Map<string, number>();
  #virtualTime = 0;

  /** How many wait. */
  get size(): number {
    return this.#weighted.length + this.#background.length;
  }

  /** Of all flows that wait, together; BACKGROUND counts for nothing. */
  get weight(): number {
    const flows = new Map(this.#weighted.map(({ flow, weight }) => [flow, weight]));
    return [...flows.values()].reduce((sum: number, weight) => sum + weight, 0);
  }

  /** Takes somebody in. */
  add(waiting: Waiting<T>): void {
    if (waiting.weight === 0) {
      this.#background.push(waiting);
      return;
    }
    const start = Math.max(this.#virtualTime, this.#finish.get(waiting.flow) ?? 0);
    this.#finish.set(waiting.flow, start + SCALE / waiting.weight);
    const behind = this.#weighted.findLastIndex((other) => other.start <= start);
    this.#weighted.splice(behind + 1, 0, { ...waiting, start });
  }

  /** Takes out who is next; undefined when nobody waits, which ends the contention and forgets shares. */
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

  /** Takes out somebody who no longer wants to wait; answers whether they did. */
  remove(item: T): boolean {
    const size = this.size;
    this.#weighted = this.#weighted.filter((waiting) => waiting.item !== item);
    this.#background = this.#background.filter((waiting) => waiting.item !== item);
    return this.size < size;
  }
}
