import type { Changes, Topic } from './changes.ts';

/** A wake-up by commits that is not lost when it comes before wait(); an abort wakes, too. */
export class ChangeAlarm {
  readonly #signal: AbortSignal;
  readonly #onAbort = () => this.ring();
  readonly #unsubscribe: (() => void)[] = [];
  #isSet = false;
  #wake: (() => void) | undefined;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', this.#onAbort);
  }

  /** Calls `onChange`, and rings, after each commit that changes `topic`. */
  on(changes: Changes, topic: Topic, onChange: () => void = () => undefined): void {
    const listener = (): void => {
      onChange();
      this.ring();
    };
    this.#unsubscribe.push(changes.subscribe(topic, listener));
  }

  ring(): void {
    this.#isSet = true;
    this.#wake?.();
  }

  /** Resolves at the next ring, at once after a ring since the last wait, or after `ms`. */
  async wait(ms: number): Promise<void> {
    if (!this.#isSet && !this.#signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      this.#wake = resolve;
      await promise;
      clearTimeout(timer);
      this.#wake = undefined;
    }
    this.#isSet = false;
  }

  /** Ends the subscriptions. */
  close(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#signal.removeEventListener('abort', this.#onAbort);
  }
}

/** Shortest average time between two reads of all watches together, ms; each subscription counts as a watch. */
const MS_PER_SUBSCRIPTION = 2;

/**
 * The interval in which a watch reads without a notification, ms: at least `pollMs`, and longer the more watches there
 * are, so that their reads leave time for halts (BD-2).
 */
export function watchIntervalMs({ subscriptions }: Pick<Changes, 'subscriptions'>, pollMs: number) {
  return Math.max(pollMs, subscriptions * MS_PER_SUBSCRIPTION);
}

/** What {@link awaitChange} waits for. */
export interface AwaitedChange<T> {
  readonly changes: Changes;
  readonly topic: Topic;
  /** Interval of reads without a change, ms, because change notifications may be lost. */
  readonly pollMs: number;
  /** Ends the wait. */
  readonly signal: AbortSignal;
  readonly read: () => Promise<T>;
  readonly isEnough: (value: T) => boolean;
}

/** Reads now and after each change, until `isEnough` or an abort; returns the last value. */
export async function awaitChange<T>(awaited: AwaitedChange<T>): Promise<T> {
  const { changes, topic, pollMs, signal, read, isEnough } = awaited;
  const changed = new ChangeAlarm(signal);
  changed.on(changes, topic);
  try {
    while (true) {
      const value = await read();
      if (isEnough(value) || signal.aborted) return value;
      await changed.wait(pollMs);
    }
  } finally {
    changed.close();
  }
}
