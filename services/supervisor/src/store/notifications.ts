import type { RowOf } from '@writ/store';
import { sql } from 'kysely';
import { noteChange } from './change/commit-notes.ts';
import type { notifications } from './schema/notification.ts';
import type { SupervisorReader, SupervisorTransaction } from './supervisor-store.ts';

/** The row of a notification. */
export type NotificationRow = RowOf<typeof notifications>;

/** Inserts notifications in the transaction of their cause; existing notifications are unchanged. */
export async function insertNotifications(
  trx: SupervisorTransaction,
  rows: readonly NotificationRow[],
): Promise<void> {
  if (rows.length === 0) return;
  await trx
    .insertInto('notifications')
    .values([...rows])
    .onConflict((conflict) => conflict.column('notification_id').doNothing())
    .execute();
  noteChange(trx, 'notifications');
}

/** Returns the notifications with these ids, sorted by endpoint. */
export async function findNotifications(
  db: SupervisorReader,
  ids: readonly string[],
): Promise<NotificationRow[]> {
  if (ids.length === 0) return [];
  return await db
    .selectFrom('notifications')
    .selectAll()
    .where('notification_id', 'in', ids)
    .orderBy('endpoint')
    .execute();
}

/** The endpoint of a notification, unique among all scopes. */
export function endpointOf({
  scope,
  endpoint,
}: Pick<NotificationRow, 'scope' | 'endpoint'>): string {
  return `${scope}/${endpoint}`;
}

/**
 * Returns the open notifications that are due, in the order of their next attempt, without those to the `excluded`
 * endpoints; see {@link endpointOf}.
 */
export async function dueNotifications(
  db: SupervisorReader,
  now: Date,
  excluded: readonly string[],
  limit: number,
): Promise<NotificationRow[]> {
  let query = db
    .selectFrom('notifications')
    .selectAll()
    // A literal, because a parameter would not match the partial index.
    .where('state', '=', sql.lit('open'))
    .where('next_attempt_at', '<=', now);
  if (excluded.length > 0) {
    query = query.where(sql<string>`scope || '/' || endpoint`, 'not in', excluded);
  }
  return await query.orderBy('next_attempt_at').limit(limit).execute();
}

/**
 * Claims a notification until `until` and counts an attempt. Returns false when another replica has claimed it since it
 * was read.
 */
export async function claimNotification(
  trx: SupervisorTransaction,
  { notification_id, attempts }: NotificationRow,
  until: Date,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('notifications')
    .set({ attempts: attempts + 1, next_attempt_at: until })
    .where('notification_id', '=', notification_id)
    .where('attempts', '=', attempts)
    .where('state', '=', sql.lit('open'))
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/**
 * Records how the claimed attempt of a row ended. Returns false, and records nothing, if the notification has ended; a
 * failure is also not recorded if another replica has claimed the next attempt, because that attempt decides.
 */
export async function saveNotification(
  trx: SupervisorTransaction,
  { notification_id, attempts }: Pick<NotificationRow, 'notification_id' | 'attempts'>,
  changes: Pick<NotificationRow, 'state' | 'problem' | 'next_attempt_at'>,
): Promise<boolean> {
  let query = trx
    .updateTable('notifications')
    .set(changes)
    .where('notification_id', '=', notification_id)
    .where('state', '=', sql.lit('open'));
  if (changes.state !== 'delivered') query = query.where('attempts', '=', attempts + 1);
  const { numUpdatedRows } = await query.executeTakeFirst();
  if (numUpdatedRows === 0n) return false;
  noteChange(trx, 'notification-attempts');
  return true;
}

/** Deletes the notifications that ended and were created before a time. */
export async function deleteEndedNotifications(
  trx: SupervisorTransaction,
  before: Date,
): Promise<void> {
  await trx
    .deleteFrom('notifications')
    .where('state', '!=', sql.lit('open'))
    .where('created_at', '<', before)
    .execute();
}
