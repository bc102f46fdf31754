import type { CommandGroup } from '../../io.ts';
import { withFormat } from '../../output/format.ts';
import type { RecoverOptions } from './recover-stores.ts';

/** `writ recover`: continues with databases that were restored from an older copy or are lost (BD-4). */
export const recoverCommands: CommandGroup = (program, io, done) => {
  withFormat(program.command('recover'))
    .description(
      'Report the databases of a data folder that are older copies or are missing; with --yes, continue with the current data.',
    )
    .option('--data <folder>', 'the data folder (WRIT_DATA, .writ)')
    .option(
      '--service <name...>',
      'also recover these services, such as those with a PostgreSQL database',
    )
    .option(
      '--halt <id>',
      'id of the halt of everything; required if the supervisor does not use this data folder',
    )
    .option('--yes', 'continue: halt everything at the next start and end all unfinished runs')
    .action(async (options: RecoverOptions) => {
      const { recoverStores } = await import('./recover-stores.ts');
      done(await recoverStores(options, io));
    });
};
