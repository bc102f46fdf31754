import type { WritError } from '@writ/kernel';

/** Stops whatever one call waits for. A call waits for one thing at a time. */
export class Interruption {
  readonly #stop = new AbortController();
  readonly #tooLate: (error: unknown) => void;
  #reject: ((reason: unknown) => void) | undefined;

  /** @param tooLate takes the failure of work that nobody waits for any more */
  constructor(tooLate: (error: unknown) => void) {
    this.#tooLate = tooLate;
  }

  /** Aborts with the reason given to `abort`. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Aborts the signal and rejects what is waited for; the first reason stays. */
  abort(reason: WritError): void {
    if (this.signal.aborted) return;
    this.#stop.abort(reason);
    this.#reject?.(reason);
  }

  /** What `work` comes to, unless `abort` comes first; then whatever it does is ignored. */
  unlessAborted<T>(work: () => Promise<T>): Promise<T> {
    if (this.signal.aborted) return Promise.reject(this.signal.reason);
    return new Promise<T>((resolve, reject) => {
      this.#reject = reject;
      work().then(resolve, (error: unknown) => {
        if (this.signal.aborted && error !== this.signal.reason) this.#tooLate(error);
        reject(error);
      });
    });
  }
}
