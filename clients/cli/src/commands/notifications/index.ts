import { wordOf } from '@writ/client/display';
import {
  NotificationState,
  type SentNotification,
  TestNotificationsResponseSchema,
} from '@writ/contracts/writ/control/v1/control_service_pb';
import { newId } from '@writ/kernel';
import { type ClientOptions, openClient, withClientOptions } from '../../client.ts';
import { type CommandGroup, EXIT } from '../../io.ts';
import { type FormatOptions, show, withFormat } from '../../output/format.ts';
import { type Column, table } from '../../output/table.ts';

interface TestOptions extends ClientOptions, FormatOptions {
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

/** `writ notifications`: whether the endpoints of a tenant accept what is sent to them (PE-2). */
export const notificationCommands: CommandGroup = (program, io, done) => {
  const notifications = program
    .command('notifications')
    .description('Webhooks for approvals, halts and budgets.');

  withFormat(withClientOptions(notifications.command('test')))
    .description(
      'Send a test message to every endpoint of the tenant; exit code 0 only if all accept it within five seconds.',
    )
    .option('--tenant <tenant>', 'another tenant; requires the role operator')
    .option('--request-id <id>', 'repeat a request, to read the state of its messages')
    .action(async ({ tenant = '', requestId = newId('req'), ...options }: TestOptions) => {
      const { control } = openClient(options, io);
      const value = await control.testNotifications({ requestId, tenant });
      show(io, options, { schema: TestNotificationsResponseSchema, value }, () =>
        table(COLUMNS, value.notifications),
      );
      const isOpen = value.notifications.some(({ state }) => state === NotificationState.OPEN);
      if (value.notifications.length === 0)
        io.warn(
          'The tenant has no endpoint. Add one to the file that WRIT_NOTIFICATIONS_FILE names.',
        );
      if (isOpen) io.warn(`Retries continue; read them with --request-id ${requestId}.`);
      const isDelivered = value.notifications.every(
        ({ state }) => state === NotificationState.DELIVERED,
      );
      done(isDelivered && value.notifications.length > 0 ? EXIT.success : EXIT.failure);
    });
};
