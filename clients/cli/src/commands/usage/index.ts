import { InvalidArgumentError } from 'commander';
import { withClientOptions } from '../../client-options.ts';
import type { CommandGroup } from '../../io.ts';
import { withFormat } from '../../output/format.ts';
import { limitOf } from '../../output/pages.ts';
import { timeOf } from '../../output/time-option.ts';
import { GROUPS, type Group } from './groups.ts';
import type { UsageOptions } from './query-usage.ts';

/** `writ usage`: settled usage, summed by any of six dimensions (EM-10, PE-1). */
export const usageCommands: CommandGroup = (program, io, done) => {
  withFormat(withClientOptions(program.command('usage')))
    .description('Sum settled usage; usage of calls in flight is not included.')
    .option(
      '--by <dimension,...>',
      `group the rows by one or more of ${GROUPS.join(', ')}`,
      groupsOf,
      [],
    )
    .option('--since <time>', 'settled at or after this time, such as 2026-11-01 (UTC)', timeOf)
    .option('--until <time>', 'settled before this time', timeOf)
    .option('--tenant <tenant>', 'another tenant; needs the role operator')
    .option('--run <id>', 'only this run')
    .option('--session <id>', 'only this session')
    .option('--model <alias>', 'only this model')
    .option('--limit <count>', 'maximum number of rows to list', limitOf, 1_000)
    .action(async (options: UsageOptions) => {
      const { queryUsage } = await import('./query-usage.ts');
      done(await queryUsage(options, io));
    });
};

function groupsOf(text: string, groups: readonly Group[]): Group[] {
  const added = text.split(',').map((one) => one.trim().toLowerCase());
  const isGroup = (name: string): name is Group => GROUPS.some((group) => group === name);
  if (!added.every(isGroup)) throw new InvalidArgumentError(`Dimensions are ${GROUPS.join(', ')}.`);
  return [...new Set([...groups, ...added])];
}
