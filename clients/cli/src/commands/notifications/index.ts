import { withClientOptions } from '../../client-options.ts';
import type { CommandGroup } from '../../io.ts';
import { withFormat } from '../../output/format.ts';
import type { TestOptions } from './test-endpoints.ts';

/** `writ notifications`: tests whether the endpoints of a tenant accept notifications (PE-2). */
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
    .action(async (options: TestOptions) => {
      const { testEndpoints } = await import('./test-endpoints.ts');
      done(await testEndpoints(options, io));
    });
};
