import { type ClientOptions, withClientOptions } from '../../client-options.ts';
import type { CommandGroup } from '../../io.ts';
import { type FormatOptions, withFormat } from '../../output/format.ts';

/** `writ pools`: who holds, lost or waits for a slot of a run (SB-5, PE-1). */
export const poolCommands: CommandGroup = (program, io, done) => {
  const pools = program.command('pools').description('Slots of the agents of a run.');

  withFormat(withClientOptions(pools.command('get')))
    .argument('<run-id>', 'the run')
    .description('Show which agents hold a slot, lost it, or wait for one.')
    .action(async (runId: string, options: ClientOptions & FormatOptions) => {
      const { getPool } = await import('./get-pool.ts');
      done(await getPool(runId, options, io));
    });
};
