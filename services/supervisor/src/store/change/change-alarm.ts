import type { Changes, Topic } from './changes.ts';

/**
 * Wakes a waiting caller after a commit or an abort. A commit before wait() is not lost: the next wait() returns
 * immediately.
 */
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

  /** Calls `onChange` and wakes the caller of wait() after each commit that changes `topic`. */
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

  /** Resolves at the next wake-up, immediately if there was one since the last wait, or after `ms`. */
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

/** Minimum average interval between the reads of all watches together, ms; each subscription counts as a watch. */
const MS_PER_SUBSCRIPTION = 2;

/**
 * The interval at which a watch reads without a notification, ms: at least `pollMs`, and longer with more watches, so
 * that their reads do not delay halts (BD-2).
 */
export function watchIntervalMs({ subscriptions }: Pick<Changes, 'subscriptions'>, pollMs: number) {
  return Math.max(pollMs, subscriptions * MS_PER_SUBSCRIPTION);
}

/** What {@link awaitChange} waits for. */
export interface AwaitedChange<T> {
  readonly changes: Changes;
  readonly topic: Topic;
  /** Interval, ms, of reads without a change notification; a notification may be lost. */
  readonly pollMs: number;
  /** Ends the wait. */
  readonly signal: AbortSignal;
  readonly read: () => Promise<T>;
  readonly isEnough: (value: T) => boolean;
}

/**
 * Reads now, after each change and every `pollMs`, until `isEnough` returns true or `signal` aborts; returns the last
 * value.
 */
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
