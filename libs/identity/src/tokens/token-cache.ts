import { hash } from 'node:crypto';

interface Entry<V> {
  readonly value: V;
  readonly until: number;
}

/** An LRU cache of verified tokens by their SHA-256, until they expire. */
export class TokenCache<V> {
  readonly #entries = new Map<string, Entry<V>>();
  readonly #limit: number;

  /** @param limit maximum entries; zero disables the cache */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns the cached value of the token unless it has expired at `now` (Unix time, ms). */
  get(token: string, now: number): V | undefined {
    if (this.#limit === 0) return undefined;
    const key = keyOf(token);
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    if (now >= entry.until) return undefined;
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** Caches a value until `until` (Unix time, ms). */
  set(token: string, value: V, until: number): void {
    if (this.#limit === 0) return;
    this.#entries.set(keyOf(token), { value, until });
    const oldest = this.#entries.keys().next();
    if (this.#entries.size > this.#limit && oldest.done !== true)
      this.#entries.delete(oldest.value);
  }
}

/** Hashed, so that a heap dump contains no credentials. */
function keyOf(token: string): string {
  return hash('sha256', token, 'base64');
}
