import type { Clock } from '@writ/kernel';
import type { Store } from '../store.ts';
import type { OutboxDatabase } from './outbox.ts';
import { countPending } from './outbox-queries.ts';

const CHECK_MS = 60_000;
/** Maximum number of counted messages. */
const MAX_COUNT = 1_000_000;

/** A large backlog of unpublished messages. */
export interface OutboxBacklog {
  /** Number of messages, at most one million. */
  readonly count: number;
  /** When the oldest was recorded. */
  readonly oldestAt: Date;
}

/** Options of the backlog report. */
export interface BacklogOptions {
  /** Threshold in messages. */
  readonly warnAt: number;
  /**
   * Called when the backlog reaches the threshold, each time it has doubled since the last call, and with undefined
   * when it falls below half the threshold; must not throw.
   */
  readonly onBacklog: (backlog: OutboxBacklog | undefined) => void;
}

/**
 * Checks the backlog of an outbox once a minute. Messages are never dropped, so a backlog must be reported before
 * the disk is full.
 */
export class BacklogMonitor {
  readonly #store: Store<OutboxDatabase>;
  readonly #clock: Clock;
  readonly #options: BacklogOptions;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #reported = 0;

  constructor(store: Store<OutboxDatabase>, clock: Clock, options: BacklogOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#options = options;
  }

  /** Checks the backlog, at most once a minute. */
  async check(): Promise<void> {
    const now = this.#clock.monotonicMs();
    if (now - this.#checkedAt < CHECK_MS) return;
    this.#checkedAt = now;
    const { warnAt, onBacklog } = this.#options;
    const { count, oldestAt } = await countPending(this.#store, MAX_COUNT);
    if (oldestAt !== undefined && count >= Math.max(warnAt, this.#reported * 2)) {
      this.#reported = count;
      onBacklog({ count, oldestAt });
    } else if (this.#reported > 0 && count < warnAt / 2) {
      this.#reported = 0;
      onBacklog(undefined);
    }
  }
}
