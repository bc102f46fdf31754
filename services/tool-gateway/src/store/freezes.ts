import { prepareQuery } from '@writ/store';
import {
  type FreezeOrder,
  type FreezeSubject,
  purges,
  scopeKey,
  scopesOver,
} from '../domain/freeze.ts';
import type { GatewayReader, GatewayTransaction } from './gateway-store.ts';

/** The fields of an order in force that a covered agent sees. */
export type FreezeInForce = Pick<
  FreezeOrder,
  'orderId' | 'cause' | 'reason' | 'orderedBy' | 'retention'
>;

/** The orders in force that cover an agent: halts first, then by time recorded. */
export async function freezesOver(
  db: GatewayReader,
  subject: FreezeSubject,
): Promise<FreezeInForce[]> {
  const [everything, tenant, run, agent] = scopesOver(subject);
  const { rows } = await selectInForce(db, { everything, tenant, run, agent });
  if (rows.length === 0) return [];
  return rows
    .map((row) => ({
      orderId: row.order_id,
      cause: row.cause,
      reason: row.reason,
      orderedBy: row.ordered_by,
      retention: row.retention,
    }))
    .toSorted((left, right) => Number(right.cause === 'halt') - Number(left.cause === 'halt'));
}

type ScopeTexts = Readonly<Record<'everything' | 'tenant' | 'run' | 'agent', string>>;

const selectInForce = prepareQuery((db: GatewayReader, scopes: ScopeTexts) =>
  db
    .selectFrom('freezes')
    .select(['order_id', 'cause', 'reason', 'ordered_by', 'retention'])
    .where('scope', 'in', [scopes.everything, scopes.tenant, scopes.run, scopes.agent])
    .where('lifted_at', 'is', null)
    .orderBy('recorded_at')
    .orderBy('order_id'),
);

/** Orders in force recorded at or after `since`, with their scopes. */
export async function freezesSince(
  db: GatewayReader,
  since: Date,
): Promise<(FreezeInForce & { readonly scope: string })[]> {
  const rows = await db
    .selectFrom('freezes')
    .select(['scope', 'order_id', 'cause', 'reason', 'ordered_by', 'retention'])
    .where('lifted_at', 'is', null)
    .where('recorded_at', '>=', since)
    .execute();
  return rows.map(({ order_id: orderId, ordered_by: orderedBy, ...row }) => ({
    ...row,
    orderId,
    orderedBy,
  }));
}

/** Whether an order in force purges the results of this agent (SUP-4). */
export async function isPurged(db: GatewayReader, subject: FreezeSubject): Promise<boolean> {
  return (await freezesOver(db, subject)).some(purges);
}

/**
 * Records an order.
 * @returns false when an order with this id exists, lifted or not; it is not changed
 */
export async function insertFreeze(
  trx: GatewayTransaction,
  order: FreezeOrder,
  at: Date,
): Promise<boolean> {
  const result = await trx
    .insertInto('freezes')
    .values({
      order_id: order.orderId,
      scope: scopeKey(order.scope),
      cause: order.cause,
      reason: order.reason,
      ordered_by: order.orderedBy,
      ordered_at: order.orderedAt,
      retention: order.retention,
      recorded_at: at,
      lifted_at: null,
    })
    .onConflict((conflict) => conflict.column('order_id').doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** The order with this id, lifted or not; undefined when it does not exist. */
export async function findFreeze(
  db: GatewayReader,
  orderId: string,
): Promise<{ readonly scope: string; readonly lifted: boolean } | undefined> {
  const row = await db
    .selectFrom('freezes')
    .select(['scope', 'lifted_at'])
    .where('order_id', '=', orderId)
    .executeTakeFirst();
  return row && { scope: row.scope, lifted: row.lifted_at !== null };
}

/** Lifts one order. @returns false when it does not exist or was lifted before */
export async function liftFreeze(
  trx: GatewayTransaction,
  orderId: string,
  at: Date,
): Promise<boolean> {
  const result = await trx
    .updateTable('freezes')
    .set({ lifted_at: at })
    .where('order_id', '=', orderId)
    .where('lifted_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}
