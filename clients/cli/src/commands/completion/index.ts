import { Argument } from 'commander';
import { type CommandGroup, EXIT } from '../../io.ts';
import { completionTable } from './completion-table.ts';
import { SHELLS, type Shell, scriptOf } from './scripts.ts';

/** `writ completion`: the completion script of a shell, from the command table (PE-2). */
export const completionCommand: CommandGroup = (program, io, done) => {
  program
    .command('completion')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .description(
      'Print the completion script of a shell; load it with: source <(writ completion bash)',
    )
    .action((shell: Shell) => {
      io.print(scriptOf(shell, completionTable(program)));
      done(EXIT.success);
    });
};
