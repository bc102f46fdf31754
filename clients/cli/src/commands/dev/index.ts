import type { CommandGroup } from '../../io.ts';
import type { DevOptions } from './start-dev.ts';

/** `writ dev`: runs the platform in one process with the files of a project (PE-3, SYS-5). */
export const devCommand: CommandGroup = (program, io, done) => {
  program
    .command('dev')
    .argument('[folder]', 'the project', '.')
    .description(
      'Run the platform with the files of a project, and restart it when a file changes; Ctrl-C stops it.',
    )
    .option('--port <port>', 'port of the public API (WRIT_EDGE_PORT, 8080)')
    .option('--data <folder>', 'folder for the data (WRIT_DATA, .writ in the project)')
    .addOption(program.createOption('--process <name>').hideHelp())
    .action(async (folder: string, options: DevOptions) => {
      const { startDev } = await import('./start-dev.ts');
      done(await startDev(folder, options, io));
    });
};
