import type { Move } from './move.ts';

/** Moves that a slow watcher may be behind; the oldest are dropped, and Renew finds what it missed. */
const CAPACITY = 1_000;

interface Watcher {
  readonly tenants: ReadonlySet<string>;
  readonly moves: Move[];
  wake: () => void;
}

/** Tells watchers in this process who was paused and who got a slot back, once that is durable (SB-4). */
export class PauseFeed {
  readonly #watchers = new Set<Watcher>();
  readonly #closing = new AbortController();

  /** Tells the watchers of each move's tenant. */
  announce(moves: readonly Move[]): void {
    const told = moves.filter(({ change }) => change.to === 'paused' || isBack(change));
    for (const watcher of this.#watchers) {
      const some = told.filter(({ tenant }) => watcher.tenants.has(tenant));
      if (some.length === 0) continue;
      watcher.moves.push(...some);
      watcher.moves.splice(0, watcher.moves.length - CAPACITY);
      watcher.wake();
    }
  }

  /** Pauses and resumptions of `tenants` from now on, until `signal` aborts or the feed closes. */
  async *watch(tenants: readonly string[], signal: AbortSignal): AsyncGenerator<Move> {
    const ended = AbortSignal.any([signal, this.#closing.signal]);
    const watcher: Watcher = { tenants: new Set(tenants), moves: [], wake: () => undefined };
    this.#watchers.add(watcher);
    const wake = () => watcher.wake();
    ended.addEventListener('abort', wake);
    try {
      while (!ended.aborted) {
        const { promise: woken, resolve } = Promise.withResolvers<void>();
        watcher.wake = resolve;
        const next = watcher.moves.shift();
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

/** A suspended agent that wakes had its slot all along. */
function isBack({ from, to }: Move['change']): boolean {
  return to === 'active' && (from === 'paused' || from === 'waiting');
}
