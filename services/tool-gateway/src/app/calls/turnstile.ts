/**
 * Lets a few calls through at a time, and of those that wait one of each lane in turn, no more of them
 * in a turn of the event loop than there are places: a flood in one lane keeps those of the others
 * only so long (TG-6).
 */
export class Turnstile {
  readonly #places: number;
  readonly #lanes = new Map<string, (() => void)[]>();
  #taken = 0;

  /** @param places how many calls may be within at a time */
  constructor(places: number) {
    this.#places = places;
  }

  /** Does `work` when it is the turn of this call; resolves or rejects as it does. */
  async pass<T>(lane: string, work: () => Promise<T>): Promise<T> {
    if (this.#taken < this.#places) this.#taken += 1;
    else await this.#wait(lane);
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  async #wait(lane: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#lanes.get(lane);
    if (waiting === undefined) this.#lanes.set(lane, [resolve]);
    else waiting.push(resolve);
    await promise;
  }

  /** Hands the place on, where anybody waits for it. */
  #leave(): void {
    // What else there is to do comes first: calls that are through make several turns of the loop.
    if (this.#lanes.size > 0) setImmediate(() => this.#admit());
    else this.#taken -= 1;
  }

  /** Lets the next one in; the lane that had its turn goes behind the others. */
  #admit(): void {
    const [next] = this.#lanes;
    if (next === undefined) {
      this.#taken -= 1;
      return;
    }
    const [lane, waiting] = next;
    const enter = waiting.shift();
    this.#lanes.delete(lane);
    if (waiting.length > 0) this.#lanes.set(lane, waiting);
    enter?.();
  }
}
