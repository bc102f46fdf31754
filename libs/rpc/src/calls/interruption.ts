import type { WritError } from '@writ/kernel';

/** Aborts the pending work of one call. A call waits for one promise at a time. */
export class Interruption {
  readonly #stop = new AbortController();
  readonly #onLateError: (error: unknown) => void;
  #reject: ((reason: unknown) => void) | undefined;

  /** @param onLateError receives errors of work that fails after the abort */
  constructor(onLateError: (error: unknown) => void) {
    this.#onLateError = onLateError;
  }

  /** Aborts with the reason passed to `abort`. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Aborts the signal and rejects the pending promise; the first reason wins. */
  abort(reason: WritError): void {
    if (this.signal.aborted) return;
    this.#stop.abort(reason);
    this.#reject?.(reason);
  }

  /** Returns the result of `work`, or rejects as soon as `abort` is called. */
  unlessAborted<T>(work: () => Promise<T>): Promise<T> {
    if (this.signal.aborted) return Promise.reject(this.signal.reason);
    return new Promise<T>((resolve, reject) => {
      this.#reject = reject;
      work().then(resolve, (error: unknown) => {
        if (this.signal.aborted && error !== this.signal.reason) this.#onLateError(error);
        reject(error);
      });
    });
  }
}
