import type { TransactionOptions } from '@writ/store';
import type { Transaction } from 'kysely';
import type { WorkerDatabase } from '../src/store/schema.ts';
import type { WorkerStore } from '../src/store/worker-store.ts';

/** Hooks around every transaction that is not marked as background; `n` is its number, from 1. */
export interface Interception {
  readonly before?: (n: number) => Promise<void>;
  /** Called after the commit. */
  readonly after?: (n: number) => Promise<void>;
}

/** A store that can delay or stop its transactions. */
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
