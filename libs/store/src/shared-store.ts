import { UnavailableError } from '@writ/kernel';
import type { Kysely, Transaction } from 'kysely';
import { type OpenStoreOptions, openStore } from './open-store.ts';
import { createReplicas } from './replicas/create-replicas.ts';
import type { Replicas } from './replicas/replicas.ts';
import { GRACE_MS } from './replicas/session-replicas.ts';
import type { Store, StoreDialect, TransactionOptions } from './store.ts';

/** The store of a service and the replicas that share it. */
export interface SharedStore<DB> extends Store<DB> {
  /** The replicas; this process leaves them when the store is closed. */
  readonly replicas: Replicas;
}

/** Options of {@link openSharedStore}. */
export interface SharedStoreOptions<DB> extends OpenStoreOptions {
  /** Called after every committed transaction; must not throw. */
  readonly onCommit?: (trx: Transaction<DB>) => void;
}

/**
 * Opens the store of a service and joins the replicas that share it.
 * @throws the errors of openStore
 */
export async function openSharedStore<DB>({
  onCommit,
  ...options
}: SharedStoreOptions<DB>): Promise<SharedStore<DB>> {
  const store = await openStore<DB>(options);
  const replicas = createReplicas(store.db);
  try {
    await replicas.start();
  } catch (error) {
    await store.close();
    throw error;
  }
  return new JoinedStore(store, replicas, onCommit);
}

class JoinedStore<DB> implements SharedStore<DB> {
  readonly dialect: StoreDialect;
  readonly db: Kysely<DB>;
  readonly urgentDb: Kysely<DB>;
  readonly replicas: Replicas;
  readonly #store: Store<DB>;
  readonly #onCommit: SharedStoreOptions<DB>['onCommit'];
  #invisibleSince: number | undefined;

  constructor(store: Store<DB>, replicas: Replicas, onCommit: SharedStoreOptions<DB>['onCommit']) {
    this.dialect = store.dialect;
    this.db = store.db;
    this.urgentDb = store.urgentDb;
    this.replicas = replicas;
    this.#store = store;
    this.#onCommit = onCommit;
  }

  get commits(): number {
    return this.#store.commits;
  }

  get backgroundCommits(): number {
    return this.#store.backgroundCommits;
  }

  async checkAvailable(): Promise<void> {
    await this.#store.checkAvailable();
    if (this.replicas.isVisible()) {
      this.#invisibleSince = undefined;
      return;
    }
    this.#invisibleSince ??= performance.now();
    if (performance.now() - this.#invisibleSince < GRACE_MS) return;
    throw new UnavailableError(
      'STORE_UNREACHABLE',
      'The database session that marks this replica as alive for the other replicas is lost.',
    );
  }

  async transaction<T>(
    work: (trx: Transaction<DB>) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T> {
    let used: Transaction<DB> | undefined;
    const result = await this.#store.transaction(async (trx) => {
      used = trx;
      return await work(trx);
    }, options);
    if (used !== undefined) this.#onCommit?.(used);
    return result;
  }

  async close(): Promise<void> {
    try {
      await this.#store.close();
    } finally {
      await this.replicas.stop();
    }
  }
}
