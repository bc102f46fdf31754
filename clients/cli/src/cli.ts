import { Command, CommanderError } from 'commander';
import { COMMANDS } from './commands/index.ts';
import { type CliIo, EXIT, type Exit } from './io.ts';

/** Runs one command line and returns the exit code; it prints through `io` and never throws. */
export async function runCli(args: readonly string[], io: CliIo): Promise<Exit> {
  let exit: Exit = EXIT.success;
  const program = new Command('writ')
    .description('Audit, certificates, policy, halts, costs and gateway checks of a Writ platform.')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.print(text.trimEnd()),
      writeErr: (text) => io.warn(text.trimEnd()),
    });
  const done = (code: Exit): void => {
    exit = code;
  };
  for (const command of COMMANDS) command(program, io, done);
  try {
    await program.parseAsync(args, { from: 'user' });
    return exit;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.success : EXIT.error;
    io.warn(error instanceof Error ? error.message : String(error));
    return EXIT.error;
  }
}
