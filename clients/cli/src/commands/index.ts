import type { Command } from 'commander';
import type { CliIo, Exit } from '../io.ts';
import { auditCommands } from './audit/index.ts';
import { gatewayCommands } from './gateway/index.ts';
import { haltCommands } from './halt/index.ts';
import { keyCommands } from './keys/index.ts';
import { policyCommands } from './policy/index.ts';

/** Adds a command group to the program; its actions tell by `done` what came of them. */
export type CommandGroup = (program: Command, io: CliIo, done: (exit: Exit) => void) => void;

/** Every command group of `writ`. */
export const COMMANDS: readonly CommandGroup[] = [
  auditCommands,
  gatewayCommands,
  haltCommands,
  keyCommands,
  policyCommands,
];
