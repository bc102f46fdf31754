import type { Command } from 'commander';
import { withClientOptions } from '../../client-options.ts';
import type { CommandGroup } from '../../io.ts';
import { withFormat } from '../../output/format.ts';
import type { DoctorOptions } from './diagnose.ts';

/** `writ doctor`: checks a project and its running platform (SYS-3). */
export const doctorCommand: CommandGroup = (program, io, done) => {
  withFormat(withClientOptions(program.command('doctor') as Command))
    .argument('[folder]', 'the project', '.')
    .description(
      'Check the files of a project, the references between them, and the running platform; exit code 1 for an error.',
    )
    .option('--no-platform', 'check only the files and the disk')
    .action(async (folder: string, options: DoctorOptions) => {
      const { diagnose } = await import('./diagnose.ts');
      done(await diagnose(folder, options, io));
    });
};
