import { fileURLToPath } from 'node:url';
import { omitUndefined } from '@writ/kernel';
import { loadProject } from '@writ/platform';
import { type CommandGroup, EXIT } from '../../io.ts';
import { runDev } from './run-dev.ts';
import { servePlatform } from './serve-platform.ts';

interface DevOptions {
  readonly port?: string;
  readonly data?: string;
  readonly process?: string;
}

/** `writ dev`: the platform in one process, on the files of a project (PE-3, SYS-5). */
export const devCommand: CommandGroup = (program, io, done) => {
  program
    .command('dev')
    .argument('[folder]', 'the project', '.')
    .description(
      'Start the platform on a project and start it again when a file changes; Ctrl-C stops it.',
    )
    .option('--port <port>', 'port of the public API (WRIT_EDGE_PORT, 8080)')
    .option('--data <folder>', 'folder for the data (WRIT_DATA, .writ in the project)')
    .addOption(program.createOption('--process <name>').hideHelp())
    .action(async (folder: string, options: DevOptions) => {
      const env = {
        ...io.env,
        ...omitUndefined({ WRIT_EDGE_PORT: options.port, WRIT_DATA: options.data }),
      };
      if (options.process === 'platform') {
        await servePlatform(folder, { ...io, env });
        return done(EXIT.success);
      }
      // Fails before a process is started.
      loadProject(folder);
      done(await runDev({ folder, env, main: mainModule() }, io));
    });
};

/** The entry point of the command: a sibling in the sources as in the package. */
function mainModule(): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return fileURLToPath(new URL(`../../main.${extension}`, import.meta.url));
}
