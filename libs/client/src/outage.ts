import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs, UnavailableError } from '@writ/kernel';

/** Pauses before a watch reconnects. */
const BACKOFF = { baseMs: 500, maxMs: 3_000 };

/** The time during which a watch cannot reach the supervisor; decides whether the watch reconnects. */
export class Outage {
  readonly #limitMs: number;
  /** Whether the supervisor has responded to the watch. */
  #wasReached = false;
  #failures = 0;
  #startedAt = 0;

  /** @param limitMs duration of an outage after which the watch fails, ms */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** Ends the outage, because a message was received. */
  end(): void {
    this.#wasReached = true;
    this.#failures = 0;
  }

  /**
   * Waits before the next attempt, at most until `signal` is aborted.
   * @throws `error` if it is not UNAVAILABLE, if its reason is CERTIFICATE_REJECTED, if the supervisor has never
   * responded, or if the outage would exceed its limit
   */
  async pause(error: unknown, signal: AbortSignal | undefined): Promise<void> {
    if (!(error instanceof UnavailableError) || error.reason === 'CERTIFICATE_REJECTED')
      throw error;
    // A server that is shutting down has responded; another replica or the next process serves the watch.
    this.#wasReached ||= error.reason === 'DRAINING';
    const now = performance.now();
    if (this.#failures === 0) this.#startedAt = now;
    this.#failures += 1;
    const waitMs = backoffMs(this.#failures, BACKOFF);
    if (!this.#wasReached || now + waitMs >= this.#startedAt + this.#limitMs) throw error;
    // After an abort, the next attempt fails with the error of a cancelled call.
    await sleep(waitMs, undefined, signal && { signal }).catch(() => undefined);
  }
}
