import { type Clock, isWritError, UnavailableError, withTimeout } from '@writ/kernel';
import type { Store } from '@writ/store';
import { type Logger, outageFields } from '@writ/telemetry';

const INTERVAL_MS = 1_000;
/**
 * Longest wait for the check, ms. It is longer than the default statement timeout of 5 s, so that a slow database does
 * not make all replicas report NOT_SERVING while their statements still succeed.
 */
const SILENCE_MS = 6_000;
/**
 * A check that ends this long after its timeout was delayed by this process, perhaps not by the database. The next
 * check decides.
 */
const OWN_DELAY_MS = 250;

/** Dependencies of a {@link StoreAvailability}. */
export interface StoreAvailabilityParts {
  readonly store: Pick<Store<never>, 'checkAvailable'>;
  readonly log: Logger;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Called when the availability changes; the store is initially considered available. */
  readonly onChange: (isAvailable: boolean) => void;
}

/** Checks every second whether the database of a service answers and accepts writes (SYS-4). */
export class StoreAvailability {
  readonly #parts: StoreAvailabilityParts;
  #isAvailable = true;
  /** Whether the last check was delayed by this process. */
  #wasDelayed = false;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: StoreAvailabilityParts) {
    this.#parts = parts;
  }

  /** Checks at once, then every second. */
  start(): void {
    void this.#check();
  }

  /** Stops the checks; reports no further change. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  async #check(): Promise<void> {
    const { store, log, clock, onChange } = this.#parts;
    const startedAt = clock.monotonicMs();
    const error = await withTimeout(store.checkAvailable(), SILENCE_MS, silent).catch(
      (failure: unknown) => failure,
    );
    if (this.#isStopped) return;
    const isAvailable = error === undefined;
    const isDelayed = !isAvailable && clock.monotonicMs() - startedAt > SILENCE_MS + OWN_DELAY_MS;
    const isUnknown = isDelayed && !this.#wasDelayed;
    this.#wasDelayed = isDelayed;
    if (isAvailable !== this.#isAvailable && !isUnknown) {
      this.#isAvailable = isAvailable;
      if (isAvailable) log.info('database available');
      else log.error(describe(error), 'database unavailable, health reports NOT_SERVING');
      onChange(isAvailable);
    }
    this.#timer = setTimeout(() => void this.#check(), INTERVAL_MS).unref();
  }
}

/** Returns the log fields of an error, without the stack if it is an outage. */
function describe(error: unknown): object {
  if (!isWritError(error)) return { err: error };
  return outageFields(error);
}

function silent(): never {
  throw new UnavailableError(
    'STORE_UNREACHABLE',
    `The database did not answer within ${SILENCE_MS / 1_000} seconds.`,
  );
}
