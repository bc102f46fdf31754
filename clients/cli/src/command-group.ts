import type { Command } from 'commander';
import type { CliIo, Exit } from './io.ts';

/** Adds a command group to the program; its actions tell by `done` what came of them. */
export type CommandGroup = (program: Command, io: CliIo, done: (exit: Exit) => void) => void;
