import type { TransactionOptions } from '@writ/store';
import type { Transaction } from 'kysely';
import type { WorkerDatabase } from '../src/store/schema.ts';
import type { WorkerStore } from '../src/store/worker-store.ts';

/** A store whose worker dies right before or right after its n-th commit that a request waits for. */
export class DyingStore implements WorkerStore {
  readonly #store: WorkerStore;
  readonly #deathAt: number;
  readonly #moment: 'before' | 'after';
  readonly #die: () => Promise<never>;
  #count = 0;

  constructor(
    store: WorkerStore,
    deathAt: number,
    moment: 'before' | 'after',
    die: () => Promise<never>,
  ) {
    this.#store = store;
    this.#deathAt = deathAt;
    this.#moment = moment;
    this.#die = die;
  }

  get dialect() {
    return this.#store.dialect;
  }

  get db() {
    return this.#store.db;
  }

  get commits() {
    return this.#store.commits;
  }

  get backgroundCommits() {
    return this.#store.backgroundCommits;
  }

  async transaction<T>(
    work: (trx: Transaction<WorkerDatabase>) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T> {
    if (options?.background === true) return await this.#store.transaction(work, options);
    this.#count += 1;
    const isDead = this.#count >= this.#deathAt;
    if (isDead && (this.#moment === 'before' || this.#count > this.#deathAt))
      return await this.#die();
    const result = await this.#store.transaction(work, options);
    return isDead ? await this.#die() : result;
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}
