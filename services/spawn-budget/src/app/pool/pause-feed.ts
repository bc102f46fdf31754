import type { RunKey } from '@writ/kernel';
import type { SlotChange } from '../../domain/pool/pool.ts';

/** A committed slot change and its pool. */
export interface PoolSlotChange extends RunKey {
  readonly change: SlotChange;
  readonly at: Date;
}

/**
 * Maximum number of undelivered changes per watcher. If there are more, the oldest are dropped; the affected agents get
 * their current state from Renew.
 */
const CAPACITY = 1_000;

interface Watcher {
  readonly tenants: ReadonlySet<string>;
  readonly changes: PoolSlotChange[];
  wake: () => void;
}

/** Delivers committed pauses and resumptions to the watchers in this process (SB-4). */
export class PauseFeed {
  readonly #watchers = new Set<Watcher>();
  readonly #closing = new AbortController();

  /** Publishes changes to the watchers of their tenants. */
  publish(changes: readonly PoolSlotChange[]): void {
    const relevant = changes.filter(({ change }) => change.to === 'paused' || isResumption(change));
    for (const watcher of this.#watchers) {
      const own = relevant.filter(({ tenant }) => watcher.tenants.has(tenant));
      if (own.length === 0) continue;
      watcher.changes.push(...own);
      watcher.changes.splice(0, watcher.changes.length - CAPACITY);
      watcher.wake();
    }
  }

  /**
   * Yields the pauses and resumptions of `tenants` that are published after the iteration starts, until `signal` aborts
   * or the feed closes.
   */
  async *watch(tenants: readonly string[], signal: AbortSignal): AsyncGenerator<PoolSlotChange> {
    const ended = AbortSignal.any([signal, this.#closing.signal]);
    const watcher: Watcher = { tenants: new Set(tenants), changes: [], wake: () => undefined };
    this.#watchers.add(watcher);
    const wake = () => watcher.wake();
    ended.addEventListener('abort', wake);
    try {
      while (!ended.aborted) {
        const { promise: woken, resolve } = Promise.withResolvers<void>();
        watcher.wake = resolve;
        const next = watcher.changes.shift();
        if (next === undefined) await woken;
        else yield next;
      }
    } finally {
      this.#watchers.delete(watcher);
      ended.removeEventListener('abort', wake);
    }
  }

  /** Ends every watch. */
  close(): void {
    this.#closing.abort();
  }
}

/**
 * Whether a change gives a slot to an agent without a slot. A change from `suspended` to `active` does not, because a
 * suspended agent keeps its slot.
 */
function isResumption({ from, to }: SlotChange): boolean {
  return to === 'active' && (from === 'paused' || from === 'waiting');
}
