import type { Command } from 'commander';

/** Environment and output of commands; tests replace them. */
export interface CliIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes a line to standard output. */
  readonly print: (line: string) => void;
  /** Writes a line to standard error. */
  readonly warn: (line: string) => void;
}

/** Exit codes. */
export const EXIT = {
  /** The command succeeded, or the check passed. */
  success: 0,
  /** The check failed, or the command ran without the requested outcome, such as a run that ended with an error. */
  failure: 1,
  /**
   * The command could not run: invalid arguments, an error of the server, no connection to it, or standard output that
   * cannot be written.
   */
  error: 2,
  /** Ctrl-C ended the watch of a run, which continues. */
  interrupted: 130,
  /** The reader of standard output has closed the pipe; the exit status that shells report after SIGPIPE. */
  brokenPipe: 141,
} as const;
export type Exit = (typeof EXIT)[keyof typeof EXIT];

/**
 * Adds a command group to the program; its actions report their exit code through `done`. Every invocation of `writ`
 * loads the declarations of all groups. Therefore an action imports the module that implements it only when the action
 * runs.
 */
export type CommandGroup = (program: Command, io: CliIo, done: (exit: Exit) => void) => void;
