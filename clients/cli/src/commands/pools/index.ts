import type { PriorityName } from '@writ/kernel';
import { Argument } from 'commander';
import { type ClientOptions, withClientOptions } from '../../client-options.ts';
import type { CommandGroup } from '../../io.ts';
import { type FormatOptions, withFormat } from '../../output/format.ts';
import type { ReprioritizeOptions } from './reprioritize.ts';

/** All priorities, lowest first. */
const PRIORITIES: readonly Lowercase<PriorityName>[] = [
  'background',
  'low',
  'normal',
  'high',
  'critical',
];

/**
 * `writ pools`: shows which agents of a run hold a slot, lost it or wait for one, and sets their priority (SB-5, PE-1).
 */
export const poolCommands: CommandGroup = (program, io, done) => {
  const pools = program.command('pools').description('Slots of the agents of a run.');

  withFormat(withClientOptions(pools.command('get')))
    .argument('<run-id>', 'the run')
    .description('Show which agents hold a slot, lost it, or wait for one.')
    .action(async (runId: string, options: ClientOptions & FormatOptions) => {
      const { getPool } = await import('./get-pool.ts');
      done(await getPool(runId, options, io));
    });

  withFormat(withClientOptions(pools.command('reprioritize')))
    .argument('<run-id>', 'the run')
    .addArgument(new Argument('<priority>', 'the new priority').choices(PRIORITIES))
    .description('Change the priority of a live agent for slots and model calls.')
    .option('--agent <instance>', 'the agent; default: the root agent')
    .option('--tenant <tenant>', 'another tenant; needs the role operator')
    .option('--request-id <id>', 'repeat a request that was not answered')
    .action(async (runId: string, name: Lowercase<PriorityName>, options: ReprioritizeOptions) => {
      const { reprioritize } = await import('./reprioritize.ts');
      done(await reprioritize(runId, name, options, io));
    });
};
