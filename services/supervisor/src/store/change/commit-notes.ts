import type { RunKey } from '@writ/kernel';
import { type RowOf, TransactionValue } from '@writ/store';
import type { Transaction } from 'kysely';
import type { SupervisorDatabase } from '../schema/index.ts';
import type { orders } from '../schema/order.ts';
import type { StoredRunState } from '../schema/run.ts';
import type { Topic } from './changes.ts';

/** The row of an order. */
export type OrderRow = RowOf<typeof orders>;

/** The state that a transaction gave to a run. */
export interface NotedRunState extends RunKey {
  readonly state: StoredRunState;
}

/** The changes of a transaction of this process that listeners receive after its commit (CO-1). */
export interface CommitNotes {
  readonly topics: Set<Topic>;
  /** The orders that the transaction placed. */
  readonly orders: OrderRow[];
  /** The states that the transaction gave to runs, in order. */
  readonly runStates: NotedRunState[];
}

const notes = new TransactionValue<CommitNotes>(() => ({
  topics: new Set(),
  orders: [],
  runStates: [],
}));

/** Returns the notes of a transaction: its statements add to them, and the store reads them after the commit. */
export function notesOf(trx: Transaction<SupervisorDatabase>): CommitNotes {
  return notes.of(trx);
}

/** Records that `trx` changes a topic; subscribers are notified after the commit. */
export function noteChange(trx: Transaction<SupervisorDatabase>, topic: Topic): void {
  notesOf(trx).topics.add(topic);
}
