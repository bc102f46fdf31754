import type { TransactionOptions } from '@writ/store';
import type { Transaction } from 'kysely';
import type { WorkerDatabase } from '../src/store/schema.ts';
import type { WorkerStore } from '../src/store/worker-store.ts';
import type { FaultSwitches } from './fault-switches.ts';

/** Hooks around every transaction that is not marked as background; `n` is its number, from 1. */
export interface Interception {
  readonly before?: (n: number) => Promise<void>;
  /** Called after the commit. */
  readonly after?: (n: number) => Promise<void>;
}

/**
 * Returns the hooks of a worker that crashes immediately before or after its commit `commit` and commits nothing
 * afterwards. `died` resolves at the crash.
 */
export function crashAt(
  faults: FaultSwitches,
  moment: 'before' | 'after',
  commit: number,
): { readonly hooks: Interception; readonly died: Promise<void> } {
  const { promise: died, resolve } = Promise.withResolvers<void>();
  const die = async (n: number) => {
    if (n < commit) return;
    resolve();
    await faults.untilReleased();
    throw new Error('The worker is dead.');
  };
  const hooks =
    moment === 'before' ? { before: die } : { before: (n: number) => die(n - 1), after: die };
  return { hooks, died };
}

/** A store with hooks that can delay or fail its transactions. */
export class InterceptedStore implements WorkerStore {
  readonly #store: WorkerStore;
  readonly #interception: Interception;
  #count = 0;

  constructor(store: WorkerStore, interception: Interception) {
    this.#store = store;
    this.#interception = interception;
  }

  get dialect() {
    return this.#store.dialect;
  }

  get db() {
    return this.#store.db;
  }

  get urgentDb() {
    return this.#store.urgentDb;
  }

  get commits() {
    return this.#store.commits;
  }

  get backgroundCommits() {
    return this.#store.backgroundCommits;
  }

  checkAvailable(): Promise<void> {
    return this.#store.checkAvailable();
  }

  async transaction<T>(
    work: (trx: Transaction<WorkerDatabase>) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T> {
    if (options?.background === true) return await this.#store.transaction(work, options);
    this.#count += 1;
    const n = this.#count;
    await this.#interception.before?.(n);
    const result = await this.#store.transaction(work, options);
    await this.#interception.after?.(n);
    return result;
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}
