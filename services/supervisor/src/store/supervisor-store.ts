import {
  type CommitObserver,
  initialMigration,
  openSharedStore,
  type SharedStore,
  type StoreLocation,
} from '@writ/store';
import type { Kysely, Transaction } from 'kysely';
import { Changes } from './change/changes.ts';
import { type NotedRunState, notesOf, type OrderRow } from './change/commit-notes.ts';
import { type SupervisorDatabase, TABLES } from './schema/index.ts';

/**
 * The hint that another replica has placed orders of runs; that replica executes them itself unless it dies or has no
 * capacity.
 */
export const PLACED_ORDERS = 'placed-orders';

/** A transaction of the supervisor's store. */
export type SupervisorTransaction = Transaction<SupervisorDatabase>;

/** The store's `db`, or a transaction. */
export type SupervisorReader = Kysely<SupervisorDatabase>;

/** The supervisor's store, which notifies subscribers of changes after each commit. */
export interface SupervisorStore extends SharedStore<SupervisorDatabase> {
  readonly changes: Changes;
  /**
   * Calls `listener`, which must not throw, with the orders that a transaction of this process has placed, after the
   * commit. Returns the unsubscribe function.
   */
  onOrders(listener: (orders: readonly OrderRow[]) => void): () => void;
  /** Like onOrders, with the states that a transaction of this process gave to runs. */
  onRunStates(listener: (states: readonly NotedRunState[]) => void): () => void;
}

/**
 * Opens the supervisor's store.
 * @param onEvents called after every commit that added to the outbox; must not throw
 * @throws what openStore throws
 */
export async function openSupervisorStore(
  location: StoreLocation,
  onEvents: () => void,
  observer?: CommitObserver,
): Promise<SupervisorStore> {
  let changes: Changes | undefined;
  const placed = new Listeners<readonly OrderRow[]>();
  const changed = new Listeners<readonly NotedRunState[]>();
  const onCommit = (trx: SupervisorTransaction): void => {
    const { topics, orders, runStates } = notesOf(trx);
    if (topics.has('outbox')) onEvents();
    if (runStates.length > 0) changed.call(runStates);
    if (orders.length > 0) {
      placed.call(orders);
      // This process executes the orders of runs from memory; other replicas execute them when it dies or has no
      // capacity. Halt orders have no run id.
      const isHalt = orders.some(({ run_id: runId }) => runId === '');
      store.replicas.hint(isHalt ? 'orders' : PLACED_ORDERS);
    }
    changes?.announce(topics);
  };
  const store = await openSharedStore<SupervisorDatabase>({
    location,
    migrations: initialMigration(TABLES),
    service: 'supervisor',
    observer,
    onCommit,
  });
  changes = new Changes(store.replicas);
  return Object.assign(store, { changes, onOrders: placed.add, onRunStates: changed.add });
}

class Listeners<T> {
  readonly #listeners = new Set<(value: T) => void>();

  /** Adds a listener; returns the function that removes it. */
  readonly add = (listener: (value: T) => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  call(value: T): void {
    for (const listener of this.#listeners) listener(value);
  }
}
