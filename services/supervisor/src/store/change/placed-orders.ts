import type { RowOf } from '@writ/store';
import type { Transaction } from 'kysely';
import type { orders } from '../schema/order.ts';
import type { SupervisorDatabase } from '../schema.ts';

/** The row of an order. */
export type OrderRow = RowOf<typeof orders>;

const placed = new WeakMap<object, OrderRow[]>();

/** Adds to {@link placedOrders} of `trx`. */
export function noteOrder(trx: Transaction<SupervisorDatabase>, row: OrderRow): void {
  const rows = placed.get(trx) ?? [];
  placed.set(trx, rows);
  rows.push(row);
}

/** The orders that a transaction has placed, to be handed over once it is committed (CO-1). */
export function placedOrders(trx: Transaction<SupervisorDatabase>): readonly OrderRow[] {
  return placed.get(trx) ?? [];
}
