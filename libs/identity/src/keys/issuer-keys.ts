import { type Clock, isWritError } from '@writ/kernel';
import type { ServiceName } from '../services/names.ts';
import { keysUnavailable, type TrustedKey } from './trust.ts';

/** Fetches all keys of a service. */
export type FetchKeys = () => Promise<ReadonlyMap<string, TrustedKey>>;

/** Age at which keys are refreshed in the background, ms. */
const FRESH_MS = 5 * 60 * 1000;
/** Maximum age of keys, ms: a retired key must not be accepted for longer (SYS-4). */
const USABLE_MS = 60 * 60 * 1000;
/** Minimum interval between two fetches, ms, so that unknown key ids cannot overload a service. */
const MIN_FETCH_INTERVAL_MS = 1_000;
/** Time for which an unknown key id is rejected without another fetch, ms. */
const ABSENT_MS = 10_000;
const MAX_ABSENT = 1_000;

/** A cache of the keys of one service, fetched on demand. */
export class IssuerKeys {
  readonly #issuer: ServiceName;
  readonly #fetch: FetchKeys;
  readonly #clock: Clock;
  readonly #absentSince = new Map<string, number>();
  #keys: ReadonlyMap<string, TrustedKey> = new Map();
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  /** Number of the latest fetch. */
  #fetches = 0;
  #fetching: Promise<void> | undefined;

  constructor(issuer: ServiceName, fetch: FetchKeys, clock: Clock) {
    this.#issuer = issuer;
    this.#fetch = fetch;
    this.#clock = clock;
  }

  /**
   * Returns the key; undefined if the issuer does not have it. An unknown key id causes a fetch, unless a lookup in the
   * last ten seconds did not find it.
   * @throws UnavailableError KEYS_UNAVAILABLE when a required fetch fails, or would begin less than a second after the
   *   latest fetch
   */
  async find(keyId: string): Promise<TrustedKey | undefined> {
    const known = this.#keys.get(keyId);
    const age = this.#now() - this.#fetchedAt;
    if (known !== undefined && age < USABLE_MS) {
      if (age >= FRESH_MS) this.#refreshInBackground();
      return known;
    }
    if (this.#now() - (this.#absentSince.get(keyId) ?? Number.NEGATIVE_INFINITY) < ABSENT_MS)
      return undefined;
    // A fetch that started before this lookup may miss a new key.
    const fetchesBefore = this.#fetches;
    while (this.#fetches === fetchesBefore || this.#fetching !== undefined) {
      await (this.#fetching ?? this.#begin());
      const found = this.#keys.get(keyId);
      if (found !== undefined) return found;
    }
    this.#addAbsent(keyId);
    return undefined;
  }

  /** Fetches the keys, unless the latest fetch began less than a second ago; never rejects. */
  async refresh(): Promise<void> {
    await (this.#fetching ?? this.#begin()).catch(() => undefined);
  }

  #begin(): Promise<void> {
    const now = this.#now();
    if (now - this.#triedAt < MIN_FETCH_INTERVAL_MS)
      return Promise.reject(keysUnavailable(this.#issuer, 'it was queried less than a second ago'));
    this.#triedAt = now;
    this.#fetches += 1;
    this.#fetching = this.#fetchAll().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #fetchAll(): Promise<void> {
    try {
      this.#keys = await this.#fetch();
      this.#fetchedAt = this.#now();
    } catch (error) {
      if (isWritError(error) && error.reason === 'KEYS_UNAVAILABLE') throw error;
      throw keysUnavailable(this.#issuer, 'it did not respond', error);
    }
  }

  #refreshInBackground(): void {
    if (this.#fetching !== undefined) return;
    // An error surfaces at the next lookup after the maximum age.
    this.#begin().catch(() => undefined);
  }

  #addAbsent(keyId: string): void {
    const oldest = this.#absentSince.keys().next();
    if (this.#absentSince.size >= MAX_ABSENT && oldest.done !== true)
      this.#absentSince.delete(oldest.value);
    this.#absentSince.set(keyId, this.#now());
  }

  #now(): number {
    return this.#clock.monotonicMs();
  }
}
