import type { Socket } from 'node:net';

/**
 * Share of the limit from which quiet connections are closed, so that new connections are still accepted.
 */
const FULL = 0.95;
/** Maximum share of the limit that is closed in one pass. */
const CLOSED_AT_ONCE = 0.1;
/** A connection is quiet when nothing has arrived on it for this time, ms. */
const QUIET_MS = 500;
/** Minimum interval between two searches for quiet connections, ms. */
const SEARCH_INTERVAL_MS = 250;

interface Arrivals {
  /** Bytes that had arrived at the last search. */
  bytes: number;
  /** When data last arrived, as of the last search, ms. */
  at: number;
}

/**
 * The open connections of a port. Near the limit, it closes connections that receive no data, those with the fewest
 * received bytes first, so that idle connections do not block a client that sends a halt (BD-2).
 */
export class OpenConnections {
  readonly #limit: number;
  readonly #arrivals = new Map<Socket, Arrivals>();
  #searchedAt = Number.NEGATIVE_INFINITY;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Tracks a connection until it is closed. Times are milliseconds of a monotonic clock. */
  add(socket: Socket, now: number): void {
    this.#arrivals.set(socket, { bytes: socket.bytesRead, at: now });
    socket.once('close', () => this.#arrivals.delete(socket));
    if (this.#arrivals.size >= this.#limit * FULL) this.closeQuiet(now);
  }

  /**
   * Closes quiet connections and returns how many. The maximum number is the limit multiplied by
   * {@link CLOSED_AT_ONCE}. Returns 0 if the last search was less than {@link SEARCH_INTERVAL_MS} ago.
   */
  closeQuiet(now: number): number {
    if (now - this.#searchedAt < SEARCH_INTERVAL_MS) return 0;
    this.#searchedAt = now;
    const quiet: Socket[] = [];
    for (const [socket, arrivals] of this.#arrivals) {
      const { bytesRead } = socket;
      if (bytesRead !== arrivals.bytes) {
        arrivals.bytes = bytesRead;
        arrivals.at = now;
      } else if (now - arrivals.at >= QUIET_MS) quiet.push(socket);
    }
    const closed = quiet
      .sort((one, other) => one.bytesRead - other.bytesRead)
      .slice(0, Math.ceil(this.#limit * CLOSED_AT_ONCE));
    for (const socket of closed) socket.destroy();
    return closed.length;
  }

  /** Closes all connections. */
  destroy(): void {
    for (const socket of this.#arrivals.keys()) socket.destroy();
  }
}
