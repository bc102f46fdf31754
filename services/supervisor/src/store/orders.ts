import type { RunKey } from '@writ/kernel';
import { pickColumns, preparePerColumns, prepareQuery } from '@writ/store';
import { sql } from 'kysely';
import { type DueTerms, type OrderKind, RUN_ORDERS } from '../domain/order/order-rules.ts';
import { noteChange, notesOf, type OrderRow } from './change/commit-notes.ts';
import { orders } from './schema/order.ts';
import type { SupervisorReader, SupervisorTransaction } from './supervisor-store.ts';

/** An order to place. */
export interface NewOrder extends RunKey {
  /** Derived from the purpose of the order, so that placing it again has no effect. */
  readonly orderId: string;
  readonly kind: OrderKind;
  /** JSON by kind; see domain/order/order-payloads.ts. */
  readonly payload: object;
}

/**
 * Places an order in the transaction of its cause. The engine executes the order until it is done, even after a crash.
 * If the order id exists, the existing order is unchanged.
 */
export async function placeOrder(
  trx: SupervisorTransaction,
  order: NewOrder,
  at: Date,
): Promise<void> {
  const row: OrderRow = {
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
  };
  const { numAffectedRows = 0n } = await insertOrder(trx, row);
  if (numAffectedRows > 0n) notesOf(trx).orders.push(row);
}

const insertOrder = prepareQuery((db: SupervisorReader, row: OrderRow) =>
  db
    .insertInto('orders')
    .values(pickColumns(row, orders.columns))
    .onConflict((conflict) => conflict.column('order_id').doNothing()),
);

/** Makes every open order of a run due now. */
export async function makeOrdersDue(
  trx: SupervisorTransaction,
  { tenant, runId }: RunKey,
  at: Date,
): Promise<void> {
  const { numAffectedRows = 0n } = await updateDue(trx, { tenant, runId, at });
  if (numAffectedRows > 0n) noteChange(trx, 'orders');
}

const updateDue = prepareQuery(
  (db: SupervisorReader, { tenant, runId, at }: RunKey & { readonly at: Date }) =>
    db
      .updateTable('orders')
      .set({ next_attempt_at: at })
      .where('tenant', '=', tenant)
      .where('run_id', '=', runId)
      .where('state', '=', 'open')
      .where('next_attempt_at', '>', at),
);

/** Makes an open order due now. */
export async function makeOrderDue(
  trx: SupervisorTransaction,
  orderId: string,
  at: Date,
): Promise<void> {
  await trx
    .updateTable('orders')
    .set({ next_attempt_at: at })
    .where('order_id', '=', orderId)
    .where('state', '=', sql.lit('open'))
    .where('next_attempt_at', '>', at)
    .execute();
  noteChange(trx, 'orders');
}

/** Returns the first `limit` due open orders of the given kinds, in the order of placement. */
export async function dueOrders(
  db: SupervisorReader,
  terms: DueTerms,
  limit: number,
  kinds: readonly OrderKind[],
): Promise<OrderRow[]> {
  return await selectDue(db, terms, kinds).limit(limit).execute();
}

/** The order, if it is open and due. */
export async function findDueOrder(
  db: SupervisorReader,
  { order_id: orderId, kind }: Pick<OrderRow, 'order_id' | 'kind'>,
  terms: DueTerms,
): Promise<OrderRow | undefined> {
  return await selectDue(db, terms, [kind]).where('order_id', '=', orderId).executeTakeFirst();
}

/** Returns the oldest due open order of a run; undefined when there is none. */
export async function firstDueOrder(
  db: SupervisorReader,
  { tenant, runId }: RunKey,
  terms: DueTerms,
): Promise<OrderRow | undefined> {
  return await selectDue(db, terms, RUN_ORDERS)
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .limit(1)
    .executeTakeFirst();
}

function selectDue(
  db: SupervisorReader,
  { now, latest }: DueTerms,
  kinds: readonly OrderRow['kind'][],
) {
  return (
    db
      .selectFrom('orders')
      .selectAll()
      .where('state', '=', sql.lit('open'))
      .where((eb) => eb.or([eb('next_attempt_at', '<=', now), eb('next_attempt_at', '>', latest)]))
      // A newer release may have placed orders of other kinds.
      .where('kind', 'in', kinds)
      .orderBy('created_at')
      // Among orders with the same time, orders that start something sort before orders that end something.
      .orderBy('kind', 'desc')
  );
}

/** When the next open order after `now` is due; undefined when there is none. */
export async function nextDueAt(db: SupervisorReader, now: Date): Promise<Date | undefined> {
  const row = await db
    .selectFrom('orders')
    .select('next_attempt_at')
    .where('state', '=', sql.lit('open'))
    .where('next_attempt_at', '>', now)
    .orderBy('next_attempt_at')
    .limit(1)
    .executeTakeFirst();
  return row?.next_attempt_at;
}

/**
 * Saves the progress of an order, if it is still at the step that was read.
 * @returns false, without a change, when another replica has advanced it
 */
export async function saveOrder(
  trx: SupervisorTransaction,
  { orderId, step }: { readonly orderId: string; readonly step: string },
  changes: OrderProgress,
): Promise<boolean> {
  const change = { ...changes, key_order: orderId, key_step: step };
  const { numAffectedRows = 0n } = await updateOpen(changes)(trx, change);
  return numAffectedRows > 0n;
}

type OrderProgress = Partial<
  Pick<OrderRow, 'step' | 'state' | 'attempts' | 'next_attempt_at' | 'last_error'>
>;

interface OrderChange extends OrderProgress {
  readonly key_order: string;
  readonly key_step: string;
}

const updateOpen = preparePerColumns((columns: readonly (keyof OrderProgress)[]) =>
  prepareQuery((db: SupervisorReader, change: OrderChange) =>
    db
      .updateTable('orders')
      .set(pickColumns(change, columns))
      .where('order_id', '=', change.key_order)
      .where('state', '=', 'open')
      .where('step', '=', change.key_step),
  ),
);
