import type { CommandGroup } from '../io.ts';
import { agentCommands } from './agents/index.ts';
import { approvalCommands } from './approvals/index.ts';
import { auditCommands } from './audit/index.ts';
import { budgetCommands } from './budgets/index.ts';
import { certsCommands } from './certs/index.ts';
import { completionCommand } from './completion/index.ts';
import { devCommand } from './dev/index.ts';
import { doctorCommand } from './doctor/index.ts';
import { gatewayCommands } from './gateway/index.ts';
import { haltCommands } from './halts/index.ts';
import { initCommand } from './init/index.ts';
import { keyCommands } from './keys/index.ts';
import { modelCommands } from './models/index.ts';
import { notificationCommands } from './notifications/index.ts';
import { observeCommands } from './observe/index.ts';
import { policyCommands } from './policy/index.ts';
import { poolCommands } from './pools/index.ts';
import { recoverCommands } from './recover/index.ts';
import { runCommand, runCommands } from './runs/index.ts';
import { signingKeyCommands } from './signing-keys/index.ts';
import { toolCommands } from './tools/index.ts';
import { usageCommands } from './usage/index.ts';

/** The command groups of `writ`. */
export const COMMANDS: readonly CommandGroup[] = [
  initCommand,
  devCommand,
  doctorCommand,
  runCommand,
  runCommands,
  approvalCommands,
  agentCommands,
  toolCommands,
  modelCommands,
  usageCommands,
  budgetCommands,
  poolCommands,
  haltCommands,
  auditCommands,
  certsCommands,
  gatewayCommands,
  keyCommands,
  signingKeyCommands,
  notificationCommands,
  observeCommands,
  policyCommands,
  recoverCommands,
  completionCommand,
];
