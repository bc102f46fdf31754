import type { Clock } from '@writ/kernel';
import type { Store } from '../store.ts';
import type { OutboxDatabase } from './outbox.ts';
import { countPending } from './outbox-queries.ts';

const LOOK_EVERY_MS = 60_000;
/** Beyond this they are not counted one by one. */
const COUNT_AT_MOST = 1_000_000;

/** What waits for the bus, when that is more than is usual. */
export interface OutboxBacklog {
  /** Messages; at most a million are counted. */
  readonly count: number;
  /** When the first of them was recorded. */
  readonly oldestAt: Date;
}

/** How a backlog is told of. */
export interface BacklogWatchOptions {
  /** Messages from which on it is told of. */
  readonly warnAt: number;
  /** Told when so many wait, whenever that has doubled, and with undefined when it is over; must not throw. */
  readonly onBacklog: (backlog: OutboxBacklog | undefined) => void;
}

/**
 * Looks once a minute how much an outbox holds back. Nothing of it is ever dropped, so somebody has to
 * hear of it before the disk is full.
 */
export class BacklogWatch {
  readonly #store: Store<OutboxDatabase>;
  readonly #clock: Clock;
  readonly #options: BacklogWatchOptions;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #told = 0;

  constructor(store: Store<OutboxDatabase>, clock: Clock, options: BacklogWatchOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#options = options;
  }

  /** Looks, unless it has done so within the minute. */
  async look(): Promise<void> {
    const now = this.#clock.now().getTime();
    if (now - this.#lookedAt < LOOK_EVERY_MS) return;
    this.#lookedAt = now;
    const { warnAt, onBacklog } = this.#options;
    const { count, oldestAt } = await countPending(this.#store, COUNT_AT_MOST);
    if (oldestAt !== undefined && count >= Math.max(warnAt, this.#told * 2)) {
      this.#told = count;
      onBacklog({ count, oldestAt });
    } else if (this.#told > 0 && count < warnAt / 2) {
      this.#told = 0;
      onBacklog(undefined);
    }
  }
}
