import type { Clock, PeerClocks } from '@writ/kernel';
import type { Telemetry } from '@writ/telemetry';

const INTERVAL_MS = 1_000;
const LOG_INTERVAL_MS = 60_000;
const MIN_THRESHOLD_MS = 10_000;
/**
 * Skew threshold as a multiple of the leeway. Peers may reject tokens of this service when the skew exceeds one leeway;
 * the margin leaves time to correct the clock.
 */
const LEEWAYS = 1.5;
/**
 * Minimum number of peers for a majority: together with the own clock there are three clocks, so two correct clocks
 * outvote a wrong one.
 */
const MIN_PEERS = 2;
/** Default of {@link ClockMonitorParts.aloneMs}. */
export const ALONE_MS = 30_000;

/** Dependencies of a {@link ClockMonitor}. */
export interface ClockMonitorParts {
  readonly peerClocks: PeerClocks;
  readonly clock: Clock;
  /** Tolerated difference from the clocks of other services, ms. */
  readonly leewayMs: number;
  /** Time from the start until the clock is confirmed with fewer than two peers, ms; default 30,000. */
  readonly aloneMs?: number | undefined;
  readonly telemetry: Telemetry;
  /** Called when the clock becomes skewed or is corrected. */
  readonly onChange: () => void;
}

/**
 * Compares the clock of a service with the clocks of its peers every second (BD-3). The clock is skewed while it
 * differs from the clocks of the majority by more than 1.5 leeways and by more than ten seconds.
 */
export class ClockMonitor {
  readonly #parts: ClockMonitorParts;
  readonly #thresholdMs: number;
  readonly #createdAt: number;
  readonly #loggedAt = new Map<string, number>();
  #isSkewed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: ClockMonitorParts) {
    this.#parts = parts;
    this.#thresholdMs = Math.max(MIN_THRESHOLD_MS, LEEWAYS * parts.leewayMs);
    this.#createdAt = parts.clock.monotonicMs();
    const { telemetry, peerClocks } = parts;
    telemetry.metrics.observe('clockOffset', () =>
      [...peerClocks.offsets()].map(([peer, offsetMs]) => ({
        value: offsetMs / 1_000,
        labels: { 'writ.peer': peer },
      })),
    );
    telemetry.metrics.observe('clockSkewed', () => [{ value: this.#isSkewed ? 1 : 0 }]);
  }

  /** Whether the own clock is skewed; compares the clocks at every read. */
  get isSkewed(): boolean {
    this.check();
    return this.#isSkewed;
  }

  /**
   * Whether the own clock is not skewed and has been compared with at least two peers. With fewer peers there is no
   * majority, so the clock is confirmed `aloneMs` after the start.
   */
  get isConfirmed(): boolean {
    const { peerClocks, clock, aloneMs = ALONE_MS } = this.#parts;
    const isCompared = peerClocks.offsets().size >= MIN_PEERS;
    return !this.isSkewed && (isCompared || clock.monotonicMs() - this.#createdAt >= aloneMs);
  }

  /** Checks at once, then every second. */
  start(): void {
    this.check();
    this.#timer = setInterval(() => this.check(), INTERVAL_MS).unref();
  }

  /**
   * Stops the periodic check. Reading `isSkewed` or `isConfirmed` still compares the clocks, logs, and calls `onChange`
   * when the result changes.
   */
  stop(): void {
    clearInterval(this.#timer);
  }

  /** Compares the clocks now. */
  check(): void {
    const { peerClocks, telemetry, onChange } = this.#parts;
    const leadMs = peerClocks.ownLeadMs();
    const isSkewed = Math.abs(leadMs) > this.#thresholdMs;
    const seen = { ahead_ms: Math.round(leadMs), threshold_ms: this.#thresholdMs };
    if (isSkewed && this.#isDue('')) {
      telemetry.log.error(seen, 'clock skew above threshold, health reports NOT_SERVING');
    }
    if (!isSkewed) this.#logPeers();
    if (isSkewed === this.#isSkewed) return;
    this.#isSkewed = isSkewed;
    if (!isSkewed) {
      this.#loggedAt.delete('');
      telemetry.log.info(seen, 'clock skew below threshold');
    }
    onChange();
  }

  #logPeers(): void {
    const { peerClocks, telemetry } = this.#parts;
    for (const [peer, offsetMs] of peerClocks.offsets()) {
      if (Math.abs(offsetMs) <= this.#thresholdMs || !this.#isDue(peer)) continue;
      const seen = { peer, ahead_ms: Math.round(offsetMs), threshold_ms: this.#thresholdMs };
      telemetry.log.warn(seen, 'clock skew of a peer above threshold');
    }
  }

  #isDue(what: string): boolean {
    const now = this.#parts.clock.monotonicMs();
    const loggedAt = this.#loggedAt.get(what);
    if (loggedAt !== undefined && now - loggedAt < LOG_INTERVAL_MS) return false;
    this.#loggedAt.set(what, now);
    return true;
  }
}
