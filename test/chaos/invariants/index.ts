import { auditChainIntact } from './audit-chain-intact.ts';
import { everyEventOnce } from './every-event-once.ts';
import { executedOnce } from './executed-once.ts';
import type { Invariant } from './invariant.ts';
import { modelCallsMetered } from './model-calls-metered.ts';
import { noCrash } from './no-crash.ts';
import { noInternalError } from './no-internal-error.ts';
import { noLeaks } from './no-leaks.ts';
import { noLostApproval } from './no-lost-approval.ts';
import { noOverspend } from './no-overspend.ts';
import { noUnapprovedExecution } from './no-unapproved-execution.ts';
import { oneTerminalState } from './one-terminal-state.ts';

/** Every invariant of the platform; each must hold under any fault. */
export const INVARIANTS: readonly Invariant[] = [
  oneTerminalState,
  noOverspend,
  modelCallsMetered,
  noLeaks,
  noUnapprovedExecution,
  executedOnce,
  noLostApproval,
  everyEventOnce,
  auditChainIntact,
  noCrash,
  noInternalError,
];
