import { Command, CommanderError } from 'commander';
import packageJson from '../package.json' with { type: 'json' };
import { COMMANDS } from './commands/index.ts';
import { type CliIo, EXIT, type Exit } from './io.ts';

/** Runs one command line and returns the exit code; it prints through `io` and never throws. */
export async function runCli(args: readonly string[], io: CliIo): Promise<Exit> {
  let exit: Exit = EXIT.success;
  const program = createProgram(io, (code) => {
    exit = code;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return exit;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.success : EXIT.error;
    const { explain } = await import('./explain.ts');
    io.warn(explain(error));
    return EXIT.error;
  }
}

/** Returns the program with every command; an action reports its exit code through `done`. */
export function createProgram(io: CliIo, done: (exit: Exit) => void): Command {
  const program = new Command('writ')
    .description(
      'Manage runs, approvals, budgets, halts, audit, recovery, policy and keys of a Writ platform.',
    )
    .version(packageJson.version, '--version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print the help of a command')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.print(text.trimEnd()),
      writeErr: (text) => io.warn(text.trimEnd()),
    });
  for (const command of COMMANDS) command(program, io, done);
  return program;
}
