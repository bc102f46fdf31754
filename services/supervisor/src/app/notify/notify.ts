import type { HookEvent } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { derivedId } from '@writ/kernel';
import type { Notification } from '../../domain/notify/notification.ts';
import { insertNotifications, type NotificationRow } from '../../store/notifications.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { causeOf, notificationOf } from '../../wire/notification.ts';
import type { Endpoint, Notifications } from './notifications-file.ts';

/** Records the notifications of an event in its transaction. */
export type Notify = (trx: SupervisorTransaction, event: HookEvent, at: Date) => Promise<void>;

/**
 * Returns a function that records notifications in the transaction of their cause, so that no notification is lost and
 * none is sent for a cause that was not committed (HK-2). A repeated event adds no notification.
 */
export function notifier(current: () => Notifications): Notify {
  return async (trx, event, at) => {
    const { endpoints } = current();
    if (endpoints.size === 0) return;
    const notification = notificationOf(event, at);
    if (notification === undefined) return;
    const rows: NotificationRow[] = [];
    for (const [scope, list] of scopesOf(endpoints, event.tenant)) {
      for (const endpoint of list.filter((each) => isSubscribed(each, event, notification.type))) {
        const id = derivedId('ntf', causeOf(event), scope, endpoint.name);
        const target = { scope, endpoint: endpoint.name, tenant: event.tenant };
        rows.push(newNotification(id, target, notification, at));
      }
    }
    await insertNotifications(trx, rows);
  };
}

/** Returns the row of a notification that is due now. */
export function newNotification(
  id: string,
  target: Pick<NotificationRow, 'scope' | 'endpoint' | 'tenant'>,
  notification: Notification,
  at: Date,
): NotificationRow {
  return {
    notification_id: id,
    ...target,
    message: JSON.stringify(notification),
    state: 'open',
    attempts: 0,
    problem: '',
    next_attempt_at: at,
    created_at: at,
  };
}

/**
 * Returns the endpoints for events of a tenant with their scope: the entry of the tenant, else the entry `*`. For an
 * event without a tenant, such as a halt of everything, returns all entries.
 */
export function scopesOf(
  endpoints: Notifications['endpoints'],
  tenant: string,
): Iterable<readonly [string, readonly Endpoint[]]> {
  if (tenant === '') return endpoints;
  const scope = endpoints.has(tenant) ? tenant : '*';
  return [[scope, endpoints.get(scope) ?? []]];
}

function isSubscribed(
  { events, thresholds }: Endpoint,
  { thresholdPercent }: HookEvent,
  type: Notification['type'],
): boolean {
  if (!events.some((each) => each === type)) return false;
  return type !== 'budget_threshold' || thresholds?.includes(thresholdPercent) !== false;
}
