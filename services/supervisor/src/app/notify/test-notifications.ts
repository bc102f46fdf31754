import type { TestNotificationsRequest } from '@writ/contracts/writ/control/v1/control_service_pb';
import { canonicalDigest, derivedId } from '@writ/kernel';
import type { Person } from '@writ/rpc';
import { type SupervisorContext, transact } from '../../context.ts';
import { affectedTenant } from '../../domain/usage/usage-rights.ts';
import { awaitChange } from '../../store/change/change-alarm.ts';
import {
  findNotifications,
  insertNotifications,
  type NotificationRow,
} from '../../store/notifications.ts';
import { rememberRequest } from '../../store/requests.ts';
import { newNotification, scopesOf } from './notify.ts';

const METHOD = 'writ.control.v1.ControlService/TestNotifications';
/** How long a call waits for endpoints, ms: less than its deadline. */
const WAIT_MS = 5_000;

/**
 * Records a test notification for every endpoint of a tenant, which the notification sender sends, and waits up to five
 * seconds until each is delivered or has failed permanently (PE-2). A repeated request records no notifications and
 * does not wait.
 * @throws PermissionDeniedError OPERATOR_REQUIRED; InvalidRequestError REQUEST_ID_REUSED
 */
export async function testNotifications(
  context: SupervisorContext,
  person: Person,
  { requestId, tenant: named }: TestNotificationsRequest,
  signal: AbortSignal,
): Promise<readonly NotificationRow[]> {
  const tenant = affectedTenant(person, named);
  const { subject } = person;
  const targets = [...scopesOf(context.notifications.endpoints, tenant)].flatMap(([scope, list]) =>
    list.map(({ name: endpoint }) => ({
      id: derivedId('ntf', METHOD, person.tenant, subject, requestId, scope, endpoint),
      target: { scope, endpoint, tenant },
    })),
  );
  const isNew = await transact(context, async ({ trx, at }) => {
    const digest = canonicalDigest({ tenant });
    const request = { tenant: person.tenant, subject, method: METHOD, requestId, digest };
    if (!(await rememberRequest(trx, request, at))) return false;
    const message = { type: 'test', timestamp: at.toISOString(), data: { tenant } } as const;
    const rows = targets.map(({ id, target }) => newNotification(id, target, message, at));
    await insertNotifications(trx, rows);
    return true;
  });
  const ids = targets.map(({ id }) => id);
  return isNew
    ? await settled(context, ids, signal)
    : await findNotifications(context.store.db, ids);
}

/** Waits until no notification is pending, at most `WAIT_MS`, and returns the notifications. */
async function settled(
  { store, config }: SupervisorContext,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<readonly NotificationRow[]> {
  return await awaitChange({
    changes: store.changes,
    topic: 'notification-attempts',
    pollMs: config.notifyPollMs,
    signal: AbortSignal.any([signal, AbortSignal.timeout(WAIT_MS)]),
    read: () => findNotifications(store.db, ids),
    isEnough: (rows) => rows.every(({ state }) => state !== 'open'),
  });
}
