import { createHash } from 'node:crypto';
import type { TransactionOptions } from '../store.ts';

/** An advisory lock that a transaction needs; a shared one conflicts only with an exclusive one. */
interface WriteLock {
  /** A number for the server; equal for all processes. */
  readonly key: string;
  readonly isShared: boolean;
}

/** The locks of a transaction below the lock of the schema; `everything` for one that takes that lock exclusively. */
export type WriteScope = readonly WriteLock[] | 'everything';

/** The lock of a schema, which every transaction takes, shared or exclusively. */
const SCHEMA_LOCK = `hashtextextended('writ store ' || current_schema(), 0)`;

/** Limit of the runs of one transaction: the lock table of the server has a limited size. */
const MAX_RUNS = 32;

/** Returns the locks of the transactions on one schema. */
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

  /** Adds the locks of a transaction; the stronger mode of a lock counts. */
  add(scope: WriteScope): void {
    if (scope === 'everything') {
      this.#everything = true;
      return;
    }
    for (const { key, isShared } of scope) {
      this.#locks.set(key, isShared && this.#locks.get(key) !== false);
    }
  }

  /** Whether these locks suffice for a transaction. */
  covers(scope: WriteScope): boolean {
    if (this.#everything) return true;
    if (scope === 'everything') return false;
    return scope.every(({ key, isShared }) => {
      const held = this.#locks.get(key);
      return held !== undefined && (isShared || !held);
    });
  }

  /** Whether a transaction must wait for the end of these locks. */
  conflictsWith(scope: WriteScope): boolean {
    if (this.#everything) return true;
    if (scope === 'everything') return this.#locks.size > 0;
    return scope.some(({ key, isShared }) => {
      const held = this.#locks.get(key);
      return held !== undefined && !(isShared && held);
    });
  }

  /**
   * The expressions that acquire the locks, before anything else of the transaction. All processes acquire them in the
   * same order, each in its final mode, so that they cannot deadlock.
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
