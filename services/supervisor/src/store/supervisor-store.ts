import {
  type CommitObserver,
  initialMigration,
  openSharedStore,
  type SharedStore,
  type StoreLocation,
} from '@writ/store';
import type { Kysely, Transaction } from 'kysely';
import { Changes, notedChanges } from './change/changes.ts';
import { type OrderRow, placedOrders } from './change/placed-orders.ts';
import { type NotedRunState, notedRunStates } from './change/run-states.ts';
import { type SupervisorDatabase, TABLES } from './schema.ts';

/** A transaction of the supervisor's store. */
export type SupervisorTransaction = Transaction<SupervisorDatabase>;

/** The store's `db`, or a transaction. */
export type SupervisorReader = Kysely<SupervisorDatabase>;

/** The supervisor's store, which notifies subscribers of changes after each commit. */
export interface SupervisorStore extends SharedStore<SupervisorDatabase> {
  readonly changes: Changes;
  /**
   * Calls `listener` with the orders that a transaction of this process has placed, once it is committed; it must not
   * throw. Returns how to stop.
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
  const listeners = new Set<(orders: readonly OrderRow[]) => void>();
  const stateListeners = new Set<(states: readonly NotedRunState[]) => void>();
  const onCommit = (trx: SupervisorTransaction): void => {
    const topics = notedChanges(trx);
    if (topics.has('outbox')) onEvents();
    const states = notedRunStates(trx);
    if (states.length > 0) for (const listener of stateListeners) listener(states);
    const orders = placedOrders(trx);
    if (orders.length > 0) {
      for (const listener of listeners) listener(orders);
      // This process has them already; its replicas find them when it dies, or when it is full.
      store.replicas.hint('orders');
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
  const onOrders = (listener: (orders: readonly OrderRow[]) => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  const onRunStates = (listener: (states: readonly NotedRunState[]) => void) => {
    stateListeners.add(listener);
    return () => void stateListeners.delete(listener);
  };
  return Object.assign(store, { changes, onOrders, onRunStates });
}
