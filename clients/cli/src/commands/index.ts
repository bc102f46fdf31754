import type { CommandGroup } from '../io.ts';
import { auditCommands } from './audit/index.ts';
import { certsCommands } from './certs/index.ts';
import { gatewayCommands } from './gateway/index.ts';
import { haltCommands } from './halt/index.ts';
import { keyCommands } from './keys/index.ts';
import { observeCommands } from './observe/index.ts';
import { policyCommands } from './policy/index.ts';

/** The command groups of `writ`. */
export const COMMANDS: readonly CommandGroup[] = [
  auditCommands,
  certsCommands,
  gatewayCommands,
  haltCommands,
  keyCommands,
  observeCommands,
  policyCommands,
];
