import { hash } from 'node:crypto';

interface Entry<V> {
  readonly value: V;
  readonly until: number;
}

/** Verified tokens by their SHA-256, until they expire; the least recently used goes first. */
export class TokenCache<V> {
  readonly #entries = new Map<string, Entry<V>>();
  readonly #limit: number;

  /** @param limit most entries kept; zero keeps none */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** What was kept for the token, unless `now` (milliseconds) is past its time. */
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

  /** Keeps a value until the time `until`, in milliseconds. */
  set(token: string, value: V, until: number): void {
    if (this.#limit === 0) return;
    this.#entries.set(keyOf(token), { value, until });
    const oldest = this.#entries.keys().next();
    if (this.#entries.size > this.#limit && oldest.done !== true)
      this.#entries.delete(oldest.value);
  }
}

/** The hash, not the token: a heap dump then holds no credentials. */
function keyOf(token: string): string {
  return hash('sha256', token, 'base64');
}
