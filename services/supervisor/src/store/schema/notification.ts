import { column, table } from '@writ/store';
import type { NotificationState } from '../../domain/notify/next-attempt.ts';

/**
 * One row for each notification of an endpoint, from the transaction of its cause. Delivered and failed notifications
 * are kept for some days, so that a repeated event does not cause a second notification.
 */
export const notifications = table('notifications', {
  columns: {
    /** The `webhook-id`: derived from the cause and the endpoint. */
    notification_id: column.text(),
    /** The key in the notifications file, and the name of the endpoint below it. */
    scope: column.text(),
    endpoint: column.text(),
    /** Tenant of the cause; empty for a halt of everything. */
    tenant: column.text(),
    /** JSON: a notification of domain/notify; ids only. */
    message: column.text(),
    state: column.text<NotificationState>(),
    attempts: column.integer(),
    /** Why the last attempt failed; empty if none did. */
    problem: column.text(),
    next_attempt_at: column.timestamp(),
    created_at: column.timestamp(),
  },
  primaryKey: ['notification_id'],
  indexes: {
    notifications_due: { on: ['next_attempt_at'], where: ['state', '=', 'open'] },
    notifications_old: { on: ['created_at'], where: ['state', '!=', 'open'] },
  },
});
