import type { CommandGroup } from '../command-group.ts';
import { auditCommands } from './audit/index.ts';
import { certsCommands } from './certs/index.ts';
import { gatewayCommands } from './gateway/index.ts';
import { haltCommands } from './halt/index.ts';
import { keyCommands } from './keys/index.ts';
import { policyCommands } from './policy/index.ts';

/** Every command group of `writ`. */
export const COMMANDS: readonly CommandGroup[] = [
  auditCommands,
  certsCommands,
  gatewayCommands,
  haltCommands,
  keyCommands,
  policyCommands,
];
