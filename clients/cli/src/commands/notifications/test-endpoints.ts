import { wordOf } from '@writ/client/display';
import {
  NotificationState,
  type SentNotification,
  TestNotificationsResponseSchema,
} from '@writ/contracts/writ/control/v1/control_service_pb';
import { newId } from '@writ/kernel';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { show } from '../../output/show.ts';
import { type Column, table } from '../../output/table.ts';

/** Options of `writ notifications test`. */
export interface TestOptions extends ClientOptions, FormatOptions {
  readonly tenant?: string;
  readonly requestId?: string;
}

const COLUMNS: readonly Column<SentNotification>[] = [
  { heading: 'ENDPOINT', text: ({ endpoint }) => endpoint },
  { heading: 'STATE', text: ({ state }) => wordOf(NotificationState, state) },
  { heading: 'ATTEMPTS', isNumber: true, text: ({ attempts }) => String(attempts) },
  { heading: 'PROBLEM', text: ({ problem }) => problem },
  { heading: 'WEBHOOK ID', text: ({ notificationId }) => notificationId },
];

/** Sends a test message to every endpoint of the tenant; succeeds only if all accept it. */
export async function testEndpoints(options: TestOptions, io: CliIo): Promise<Exit> {
  const { tenant = '', requestId = newId('req') } = options;
  const { control } = openClient(options, io);
  const value = await control.testNotifications({ requestId, tenant });
  show(io, options, { schema: TestNotificationsResponseSchema, value }, () =>
    table(COLUMNS, value.notifications),
  );
  const isOpen = value.notifications.some(({ state }) => state === NotificationState.OPEN);
  if (value.notifications.length === 0)
    io.warn('The tenant has no endpoint. Add one to the file that WRIT_NOTIFICATIONS_FILE names.');
  if (isOpen) io.warn(`Retries continue; read them with --request-id ${requestId}.`);
  const isDelivered = value.notifications.every(
    ({ state }) => state === NotificationState.DELIVERED,
  );
  return isDelivered && value.notifications.length > 0 ? EXIT.success : EXIT.failure;
}
