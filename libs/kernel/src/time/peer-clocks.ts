import type { Clock } from './clock.ts';

/** Maximum number of stored readings for each peer; the oldest reading is dropped first. */
const MAX_READINGS = 16;
/** Age at which a reading is discarded, ms; twice the interval at which verifiers fetch the keys of their peers. */
const READING_LIFE_MS = 10 * 60_000;
/**
 * Difference below which two clocks are treated as equal, ms, because each reading is late by the latency of its call.
 */
const EQUAL_WITHIN_MS = 2_000;

/** A reading of the clock of a peer, taken from its response or call. */
interface Reading {
  /** Unix time of the peer minus the local monotonic clock, ms. */
  readonly lead: number;
  /** The local monotonic clock, ms. */
  readonly at: number;
}

/**
 * Records the clocks of the peers of a service, from their responses and calls (BD-3). Readings are stored relative to
 * the local monotonic clock, so that a correction of the local clock is detected at once. Differences of less than two
 * seconds are treated as zero.
 */
export class PeerClocks {
  readonly #clock: Clock;
  readonly #readings = new Map<string, Reading[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Records the clock of a peer.
   * @param peer name of the service
   * @param timeMs the current time of the clock of the peer, in milliseconds since 1970
   */
  observe(peer: string, timeMs: number): void {
    const at = this.#clock.monotonicMs();
    const readings = this.#current(peer).slice(1 - MAX_READINGS);
    this.#readings.set(peer, [...readings, { lead: timeMs - at, at }]);
  }

  /** Returns how far the clock of each peer is ahead of the local clock, ms: the median of its readings. */
  offsets(): ReadonlyMap<string, number> {
    const offsets = new Map<string, number>();
    for (const peer of this.#readings.keys()) {
      const own = this.#leads(peer);
      if (own.length > 0) offsets.set(peer, median(own.map((lead) => this.#offset(lead))));
    }
    return offsets;
  }

  /**
   * Returns how far the local clock is ahead of the median of all clocks (the peers and the local clock), ms.
   * With one peer there is no majority, and the local clock is assumed to be right.
   */
  ownLeadMs(): number {
    return 0 - median([0, ...this.offsets().values()]);
  }

  /** Converts a time by the clock of `peer` to the local clock, both in milliseconds since 1970. */
  toOwn(peer: string, timeMs: number): number {
    return timeMs - (this.offsets().get(peer) ?? 0);
  }

  /**
   * Returns the current time of the slowest clock among the replicas of `peer`, in milliseconds since 1970; undefined
   * when no clock is known.
   */
  slowestNow(peer: string): number | undefined {
    const leads = this.#leads(peer);
    if (leads.length === 0) return undefined;
    return this.#now() + this.#offset(Math.min(...leads));
  }

  #offset(lead: number): number {
    const offset = lead + this.#clock.monotonicMs() - this.#now();
    return Math.abs(offset) < EQUAL_WITHIN_MS ? 0 : offset;
  }

  #leads(peer: string): number[] {
    return this.#current(peer).map(({ lead }) => lead);
  }

  #current(peer: string): readonly Reading[] {
    const since = this.#clock.monotonicMs() - READING_LIFE_MS;
    return (this.#readings.get(peer) ?? []).filter(({ at }) => at > since);
  }

  #now(): number {
    return this.#clock.now().getTime();
  }
}

/** Returns the median. For an even number of values, it is the middle value that is nearer to zero. */
function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
  const upper = sorted[Math.ceil((sorted.length - 1) / 2)] ?? 0;
  return Math.abs(lower) <= Math.abs(upper) ? lower : upper;
}
