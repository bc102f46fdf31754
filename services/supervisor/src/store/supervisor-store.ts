import {
  type CommitObserver,
  createReplicas,
  openStore,
  type Replicas,
  type Store,
  type StoreLocation,
  type TransactionOptions,
} from '@writ/store';
import type { Kysely, Transaction } from 'kysely';
import { Changes, notedChanges } from './change/changes.ts';
import { supervisorMigrations } from './migrations.ts';
import type { SupervisorDatabase } from './schema.ts';

/** A transaction of the supervisor's store. */
export type SupervisorTransaction = Transaction<SupervisorDatabase>;

/** Where rows can be read: the store's `db`, or a transaction. */
export type SupervisorReader = Kysely<SupervisorDatabase>;

/** The supervisor's state, which tells after each commit what changed. */
export interface SupervisorStore extends Store<SupervisorDatabase> {
  readonly changes: Changes;
  /** The supervisors that share it; this one leaves them when the store is closed. */
  readonly replicas: Replicas;
}

/**
 * Opens the supervisor's store.
 * @param onEvents called after every commit that left something in the outbox; must not throw
 * @throws what openStore throws
 */
export async function openSupervisorStore(
  location: StoreLocation,
  onEvents: () => void,
  observer?: CommitObserver,
): Promise<SupervisorStore> {
  const store = await openStore<SupervisorDatabase>({
    location,
    migrations: supervisorMigrations,
    service: 'supervisor',
    observer,
  });
  const replicas = createReplicas(store.db);
  try {
    await replicas.start();
  } catch (error) {
    await store.close();
    throw error;
  }
  return new ObservedStore(store, replicas, onEvents);
}

class ObservedStore implements SupervisorStore {
  readonly changes: Changes;
  readonly replicas: Replicas;
  readonly #store: Store<SupervisorDatabase>;
  readonly #onEvents: () => void;

  constructor(store: Store<SupervisorDatabase>, replicas: Replicas, onEvents: () => void) {
    this.#store = store;
    this.replicas = replicas;
    this.changes = new Changes(replicas);
    this.#onEvents = onEvents;
  }

  get dialect(): Store<SupervisorDatabase>['dialect'] {
    return this.#store.dialect;
  }

  get db(): Kysely<SupervisorDatabase> {
    return this.#store.db;
  }

  get commits(): number {
    return this.#store.commits;
  }

  get backgroundCommits(): number {
    return this.#store.backgroundCommits;
  }

  async transaction<T>(
    work: (trx: SupervisorTransaction) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T> {
    let used: SupervisorTransaction | undefined;
    const result = await this.#store.transaction(async (trx) => {
      used = trx;
      return await work(trx);
    }, options);
    const topics = used === undefined ? undefined : notedChanges(used);
    if (topics?.has('outbox')) this.#onEvents();
    if (topics !== undefined) this.changes.announce(topics);
    return result;
  }

  async close(): Promise<void> {
    await this.#store.close();
    await this.replicas.stop();
  }
}
