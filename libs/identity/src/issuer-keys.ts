import { type Clock, isWritError } from '@writ/kernel';
import type { ServiceName } from './names.ts';
import { keysUnavailable, type TrustedKey } from './trust.ts';

/** Asks a service for all its keys. */
export type FetchKeys = () => Promise<ReadonlyMap<string, TrustedKey>>;

/** After this age keys are fetched again, in the background. */
const FRESH_MS = 5 * 60 * 1000;
/** After this age keys are no longer used: a retired key must not live on unseen (SYS-4). */
const USABLE_MS = 60 * 60 * 1000;
/** Least time between two fetches, so that made-up key ids cannot hammer a service. */
const FETCH_EVERY_MS = 1_000;
/** How long an id that the service does not know is refused without asking again. */
const ABSENT_MS = 10_000;
const MAX_ABSENT = 1_000;

/** The keys of one service, fetched lazily by key id and kept. */
export class IssuerKeys {
  readonly #issuer: ServiceName;
  readonly #fetch: FetchKeys;
  readonly #clock: Clock;
  readonly #absentSince = new Map<string, number>();
  #keys: ReadonlyMap<string, TrustedKey> = new Map();
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  /** Number of the latest fetch begun. */
  #fetches = 0;
  #underWay: Promise<void> | undefined;

  constructor(issuer: ServiceName, fetch: FetchKeys, clock: Clock) {
    this.#issuer = issuer;
    this.#fetch = fetch;
    this.#clock = clock;
  }

  /** The key, or undefined when the service was asked since and has none such. */
  async find(keyId: string): Promise<TrustedKey | undefined> {
    const known = this.#keys.get(keyId);
    const age = this.#now() - this.#fetchedAt;
    if (known !== undefined && age < USABLE_MS) {
      if (age >= FRESH_MS) this.#refreshBehind();
      return known;
    }
    if (this.#now() - (this.#absentSince.get(keyId) ?? Number.NEGATIVE_INFINITY) < ABSENT_MS)
      return undefined;
    // A fetch begun before this question may have missed a key that is a moment old.
    const asked = this.#fetches;
    while (this.#fetches === asked || this.#underWay !== undefined) {
      await (this.#underWay ?? this.#begin());
      const found = this.#keys.get(keyId);
      if (found !== undefined) return found;
    }
    this.#rememberAbsent(keyId);
    return undefined;
  }

  #begin(): Promise<void> {
    const now = this.#now();
    if (now - this.#triedAt < FETCH_EVERY_MS && now >= this.#triedAt)
      return Promise.reject(keysUnavailable(this.#issuer, 'was asked a moment ago'));
    this.#triedAt = now;
    this.#fetches += 1;
    this.#underWay = this.#fetchAll().finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  async #fetchAll(): Promise<void> {
    try {
      this.#keys = await this.#fetch();
      this.#fetchedAt = this.#now();
    } catch (error) {
      if (isWritError(error) && error.reason === 'KEYS_UNAVAILABLE') throw error;
      throw keysUnavailable(this.#issuer, 'did not answer', error);
    }
  }

  #refreshBehind(): void {
    if (this.#underWay !== undefined) return;
    // What fails now is told to whoever needs a key once these are too old.
    this.#begin().catch(() => undefined);
  }

  #rememberAbsent(keyId: string): void {
    const oldest = this.#absentSince.keys().next();
    if (this.#absentSince.size >= MAX_ABSENT && oldest.done !== true)
      this.#absentSince.delete(oldest.value);
    this.#absentSince.set(keyId, this.#now());
  }

  #now(): number {
    return this.#clock.now().getTime();
  }
}
