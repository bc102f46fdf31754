import { createHash } from 'node:crypto';
import type { TransactionOptions } from '../store.ts';

/** An advisory lock that a transaction needs. A shared lock conflicts only with an exclusive lock. */
interface WriteLock {
  /** Key of the advisory lock; the same in all processes. */
  readonly key: string;
  readonly isShared: boolean;
}

/**
 * The locks that a transaction acquires in addition to the shared schema lock; `everything` if it acquires the schema
 * lock exclusively.
 */
export type WriteScope = readonly WriteLock[] | 'everything';

/** The schema lock, which every transaction acquires in shared or exclusive mode. */
const SCHEMA_LOCK = `hashtextextended('writ store ' || current_schema(), 0)`;

/**
 * Maximum number of runs that a transaction locks individually; beyond it, the transaction takes the exclusive schema
 * lock, because the lock table of the server is limited.
 */
const MAX_RUNS = 32;

/** Returns a function that returns the locks of a transaction on `schema`. */
export function writeScopes(
  schema: string,
  { oneAtATime = false }: { readonly oneAtATime?: boolean | undefined } = {},
): (options: TransactionOptions) => WriteScope {
  const keyOf = (...name: readonly string[]) => {
    const digest = createHash('sha256').update(JSON.stringify([schema, ...name]));
    return digest.digest().readBigInt64BE().toString();
  };
  return ({ tenant, run, runs = [], resource }) => {
    const named = run === undefined ? runs : [run, ...runs];
    if (oneAtATime || named.length > MAX_RUNS) return 'everything';
    const tenants = new Set(named.map((each) => each.tenant));
    const locks = [
      ...Array.from(tenants, (each) => ({ key: keyOf(each), isShared: each !== tenant })),
      ...named.map((each) => ({ key: keyOf(each.tenant, each.runId), isShared: false })),
      ...(tenant === undefined || tenants.has(tenant)
        ? []
        : [{ key: keyOf(tenant), isShared: false }]),
      ...(resource === undefined ? [] : [{ key: keyOf('', '', resource), isShared: false }]),
    ];
    return locks.length === 0 ? 'everything' : locks;
  };
}

/** The locks of several transactions that run one after the other under one commit. */
export class LockSet {
  readonly #locks = new Map<string, boolean>();
  #everything = false;

  /** Adds the locks of a transaction. If a lock is already in the set, the stronger mode is kept. */
  add(scope: WriteScope): void {
    if (scope === 'everything') {
      this.#everything = true;
      return;
    }
    for (const { key, isShared } of scope) {
      this.#locks.set(key, isShared && this.#locks.get(key) !== false);
    }
  }

  /** Whether these locks include all locks of a transaction. */
  covers(scope: WriteScope): boolean {
    if (this.#everything) return true;
    if (scope === 'everything') return false;
    return scope.every(({ key, isShared }) => {
      const held = this.#locks.get(key);
      return held !== undefined && (isShared || !held);
    });
  }

  /** Whether a transaction must wait until these locks are released. */
  conflictsWith(scope: WriteScope): boolean {
    if (this.#everything) return true;
    if (scope === 'everything') return this.#locks.size > 0;
    return scope.some(({ key, isShared }) => {
      const held = this.#locks.get(key);
      return held !== undefined && !(isShared && held);
    });
  }

  /**
   * The SQL expressions that acquire the locks at the start of a transaction. All processes acquire locks in the same
   * order, each directly in its final mode, so they cannot deadlock.
   */
  get calls(): readonly string[] {
    if (this.#everything) return [`pg_advisory_xact_lock(${SCHEMA_LOCK})`];
    const others = [...this.#locks].sort(([a], [b]) => (a < b ? -1 : 1));
    return [
      `pg_advisory_xact_lock_shared(${SCHEMA_LOCK})`,
      ...others.map(
        ([key, isShared]) => `pg_advisory_xact_lock${isShared ? '_shared' : ''}(${key})`,
      ),
    ];
  }
}
