import { withClientOptions } from '../../client-options.ts';
import type { CommandGroup } from '../../io.ts';
import { withBudget } from '../../output/budget-options.ts';
import { withFormat } from '../../output/format.ts';
import type { GetOptions, SetOptions } from './balances.ts';

/**
 * `writ budgets`: shows the amounts spent, reserved and left at each level, and sets caps while runs are in progress
 * (EM-3, PE-1).
 */
export const budgetCommands: CommandGroup = (program, io, done) => {
  const budgets = program.command('budgets').description('Show balances and set caps.');

  withFormat(withClientOptions(budgets.command('get')))
    .description('Show the amounts spent, reserved and left for a run, a session or the tenant.')
    .option('--run <id>', 'a run, with all levels that apply to it')
    .option('--agent <instance>', 'an agent of the run; default: the root agent')
    .option('--session <id>', 'a session')
    .option('--tenant <tenant>', 'another tenant; needs the role operator')
    .action(async (options: GetOptions) => {
      const { getBalances } = await import('./balances.ts');
      done(await getBalances(options, io));
    });

  withBudget(withFormat(withClientOptions(budgets.command('set'))))
    .description('Set the caps of a run in progress, a session, or each day or month of a tenant.')
    .option('--run <id>', 'the run; for example, to raise its budget before it is exhausted')
    .option('--session <id>', 'the session')
    .option('--day', 'each UTC day of the tenant; needs the role operator')
    .option('--month', 'each UTC month of the tenant; needs the role operator')
    .option('--tenant <tenant>', 'another tenant; needs the role operator')
    .option(
      '--remove',
      'remove caps that were set for a session, day or month, so that the configured caps apply again',
    )
    .option('--request-id <id>', 'repeat a request that was not answered')
    .action(async (options: SetOptions) => {
      const { setCaps } = await import('./balances.ts');
      done(await setCaps(options, io));
    });
};
