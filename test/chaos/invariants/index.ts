import { auditChainIntact } from './audit-chain-intact.ts';
import { everyEventOnce } from './every-event-once.ts';
import { executedOnce } from './executed-once.ts';
import type { Invariant } from './invariant.ts';
import { modelOnTheBooks } from './model-on-the-books.ts';
import { noCrash } from './no-crash.ts';
import { noErrorOfOurs } from './no-error-of-ours.ts';
import { noLostApproval } from './no-lost-approval.ts';
import { noOverspend } from './no-overspend.ts';
import { noUnapprovedExecution } from './no-unapproved-execution.ts';
import { nothingLeftOver } from './nothing-left-over.ts';
import { oneTerminalState } from './one-terminal-state.ts';

/** Everything that holds whatever fails. */
export const INVARIANTS: readonly Invariant[] = [
  oneTerminalState,
  noOverspend,
  modelOnTheBooks,
  nothingLeftOver,
  noUnapprovedExecution,
  executedOnce,
  noLostApproval,
  everyEventOnce,
  auditChainIntact,
  noCrash,
  noErrorOfOurs,
];
