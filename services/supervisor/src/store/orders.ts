import type { RunKey } from '@writ/kernel';
import type { Selectable } from 'kysely';
import type { OrderKind } from '../domain/order/order-rules.ts';
import { noteChange } from './change/changes.ts';
import type { OrdersTable } from './schema/run-tables.ts';
import type { SupervisorReader, SupervisorTransaction } from './supervisor-store.ts';

/** One order to place. */
export interface NewOrder extends RunKey {
  /** Derived from what it does, so that a repeat is the same order. */
  readonly orderId: string;
  readonly kind: OrderKind;
  /** JSON, by kind; see orders/. */
  readonly payload: object;
}

/** One order as it stands. */
export type OrderRow = Selectable<OrdersTable>;

/**
 * Places an order in the transaction of the fact that calls for it: from then on it is re-driven
 * until it is done, also after a crash. An order id that is there already changes nothing.
 */
export async function placeOrder(
  trx: SupervisorTransaction,
  order: NewOrder,
  at: Date,
): Promise<void> {
  await trx
    .insertInto('orders')
    .values({
      order_id: order.orderId,
      kind: order.kind,
      tenant: order.tenant,
      run_id: order.runId,
      payload: JSON.stringify(order.payload),
      step: '',
      state: 'open',
      attempts: 0,
      next_attempt_at: at,
      last_error: null,
      created_at: at,
    })
    .onConflict((conflict) => conflict.column('order_id').doNothing())
    .execute();
  noteChange(trx, 'orders');
}

/** Makes every open order of a run due at once. */
export async function makeOrdersDue(
  trx: SupervisorTransaction,
  { tenant, runId }: RunKey,
  at: Date,
): Promise<void> {
  await trx
    .updateTable('orders')
    .set({ next_attempt_at: at })
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .where('state', '=', 'open')
    .where('next_attempt_at', '>', at)
    .execute();
  noteChange(trx, 'orders');
}

/** Makes an order due at once, if it is open. */
export async function makeOrderDue(
  trx: SupervisorTransaction,
  orderId: string,
  at: Date,
): Promise<void> {
  await trx
    .updateTable('orders')
    .set({ next_attempt_at: at })
    .where('order_id', '=', orderId)
    .where('state', '=', 'open')
    .where('next_attempt_at', '>', at)
    .execute();
  noteChange(trx, 'orders');
}

/** Open orders of some kinds whose time has come, in the order in which they were placed. */
export async function dueOrders(
  db: SupervisorReader,
  now: Date,
  limit: number,
  kinds: readonly OrderKind[],
): Promise<OrderRow[]> {
  return await db
    .selectFrom('orders')
    .selectAll()
    .where('state', '=', 'open')
    .where('next_attempt_at', '<=', now)
    // A newer release may have placed others.
    .where('kind', 'in', kinds)
    .orderBy('created_at')
    // Placed in the same millisecond: runs and children start before they end.
    .orderBy('kind', 'desc')
    .limit(limit)
    .execute();
}

/** The order as it stands, when it is open and its time has come. */
export async function findDueOrder(
  db: SupervisorReader,
  orderId: string,
  now: Date,
): Promise<OrderRow | undefined> {
  return await db
    .selectFrom('orders')
    .selectAll()
    .where('order_id', '=', orderId)
    .where('state', '=', 'open')
    .where('next_attempt_at', '<=', now)
    .executeTakeFirst();
}

/** When the next open order is due after `now`; undefined when there is none. */
export async function nextDueAt(db: SupervisorReader, now: Date): Promise<Date | undefined> {
  const row = await db
    .selectFrom('orders')
    .select('next_attempt_at')
    .where('state', '=', 'open')
    .where('next_attempt_at', '>', now)
    .orderBy('next_attempt_at')
    .limit(1)
    .executeTakeFirst();
  return row?.next_attempt_at;
}

/**
 * Writes how far an order has come, if it still stands where it was read.
 * @returns false when another replica took it on from there, and nothing was written
 */
export async function saveOrder(
  trx: SupervisorTransaction,
  { orderId, step }: { readonly orderId: string; readonly step: string },
  changes: Partial<
    Pick<OrderRow, 'step' | 'state' | 'attempts' | 'next_attempt_at' | 'last_error'>
  >,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('orders')
    .set(changes)
    .where('order_id', '=', orderId)
    .where('state', '=', 'open')
    .where('step', '=', step)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
