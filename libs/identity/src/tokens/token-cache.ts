import { hash } from 'node:crypto';
import { ByteCache } from '@writ/kernel';

interface Entry<V> {
  readonly value: V;
  readonly until: number;
}

/** Estimated memory of the claims of a token, in bytes per character of the token. */
const BYTES_PER_CHARACTER = 3;

/**
 * A cache of verified tokens that uses a limited number of bytes. The keys are the SHA-256 of the tokens; each entry
 * has an expiry time.
 */
export class TokenCache<V> {
  readonly #entries: ByteCache<Entry<V>>;
  readonly #isEnabled: boolean;

  /** @param maxBytes estimated maximum memory, bytes; zero disables the cache */
  constructor(maxBytes: number) {
    this.#isEnabled = maxBytes > 0;
    this.#entries = new ByteCache({ name: 'tokens', maxBytes });
  }

  /** Returns the cached value of the token unless it has expired at `now` (Unix time, ms). */
  get(token: string, now: number): V | undefined {
    if (!this.#isEnabled) return undefined;
    const key = keyOf(token);
    const entry = this.#entries.get(key);
    if (entry === undefined || now < entry.until) return entry?.value;
    this.#entries.delete(key);
    return undefined;
  }

  /** Caches a value until `until` (Unix time, ms). */
  set(token: string, value: V, until: number): void {
    if (!this.#isEnabled) return;
    this.#entries.set(keyOf(token), { value, until }, BYTES_PER_CHARACTER * token.length);
  }
}

/** Returns the cache key of a token: its SHA-256, so that the cache contains no tokens. */
function keyOf(token: string): string {
  return hash('sha256', token, 'base64');
}
