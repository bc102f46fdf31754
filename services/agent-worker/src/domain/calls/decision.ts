import {
  type AgentRef,
  type ExecutedFrom,
  isStopReason,
  outcomeOf,
  type Phase,
  type Verdict,
} from '@writ/kernel';

/** A proposed or approved action (SV-1). */
export type Action =
  | {
      readonly kind: 'tool';
      readonly tool: string;
      /** The exact bytes that are signed, sent and parsed (TG-1). */
      readonly argumentsJson: string;
    }
  | { readonly kind: 'delegation'; readonly agent: string; readonly task: string }
  | { readonly kind: 'final'; readonly answer: string };

/** The supervisor's decision on a proposal. Plain JSON, because it is journaled. */
export interface Decision {
  readonly decisionId: string;
  readonly callId: string;
  readonly verdict: Verdict;
  readonly reason: string;
  readonly action?: Action;
  readonly revisedAction?: Action;
  /** The approved action; absent until the proposal is approved. */
  readonly executedAction?: Action;
  readonly executedFrom?: ExecutedFrom;
  /** The writ for the gateway. Removed once the call has an outcome, if the review is not committed yet. */
  readonly writ?: string;
  /** Expiry of the writ by the supervisor's clock, in milliseconds since 1970. */
  readonly writExpiresAt?: number;
  readonly approvalId: string;
  readonly humanApproval?: {
    readonly approved: boolean;
    /** Comment of the approver. */
    readonly comment: string;
    /** Basis of the approval, as recorded by the supervisor. */
    readonly basis: string;
  };
  /** Whether the decision is final; false while an approval is pending. */
  readonly settled: boolean;
  /** The stop reason with which this decision ends the agent; empty when the agent may continue. */
  readonly stopReason: string;
  /** Whether an approved final answer ended the agent. */
  readonly runEnded: boolean;
}

/** Returns the stop reason of a refused proposal; undefined when the proposal was approved. */
export function refusalOf(decision: Decision): string | undefined {
  if (decision.stopReason !== '') return decision.stopReason;
  return decision.executedAction === undefined && !decision.runEnded
    ? `supervisor_block:${decision.reason}`
    : undefined;
}

/** Stop reasons of an approval that no person decided. */
const WITHOUT_DECISION: ReadonlySet<string> = new Set(['approval_expired', 'withdrawn']);

/** Returns the phase in which a refused proposal stopped (SV-7). */
export function phaseOfRefusal({ verdict, humanApproval, stopReason }: Decision): Phase {
  if (humanApproval !== undefined || WITHOUT_DECISION.has(stopReason)) return 'human_approval';
  if (verdict === 'invalid') return 'worker';
  return isStopReason(stopReason) && outcomeOf(stopReason).state !== 'BLOCKED'
    ? 'worker'
    : 'supervisor';
}

/** Returns a decision without its writ, for use after the call has an outcome. */
export function withoutWrit(decision: Decision): Decision {
  const { writ: _, writExpiresAt: __, ...rest } = decision;
  return rest;
}

const REPORTABLE_ERRORS = ['invalid_action:', 'tool_error:', 'tool_bad_result:'];

/**
 * Whether the agent reports this stop reason to the model and continues (AG-10): true for a refusal by policy, a human
 * or a tool limit, for an invalid action, and for an error of the tool. Limits of the run, its budget and its deadline
 * always stop the agent.
 */
export function isReportableToModel(stopReason: string): boolean {
  if (!isStopReason(stopReason)) return false;
  return (
    outcomeOf(stopReason).state === 'BLOCKED' ||
    REPORTABLE_ERRORS.some((prefix) => stopReason.startsWith(prefix))
  );
}

/** The supervisor's response to a delegation. Plain JSON, because it is journaled. */
export interface SpawnAnswer {
  readonly decision: Decision;
  /** The new child, if there is one. */
  readonly child?: AgentRef;
  /** Message of spawn-budget when no slot was available; empty otherwise. */
  readonly slotRefusal: string;
}
