import { type AgentRef, isStopReason, outcomeOf, type Phase } from '@writ/kernel';

/** What an agent wants to do, or may do (SV-1). */
export type Action =
  | {
      readonly kind: 'tool';
      readonly tool: string;
      /** Exactly the text whose bytes are signed, sent and parsed (TG-1). */
      readonly argumentsJson: string;
    }
  | { readonly kind: 'delegation'; readonly agent: string; readonly task: string }
  | { readonly kind: 'final'; readonly answer: string };

/** What the supervisor says to a proposal (SV-1). */
export type Verdict = 'approve' | 'revise' | 'block' | 'escalate' | 'invalid';

/** Whose version of an action counts (SV-6). */
export type ExecutedFrom = 'original' | 'supervisor_revised' | 'human_revised';

/** The supervisor's answer to one proposal: plain JSON, since it is journaled. */
export interface Decision {
  readonly decisionId: string;
  readonly callId: string;
  readonly verdict: Verdict;
  readonly reason: string;
  readonly action?: Action;
  readonly revisedAction?: Action;
  /** What may be executed; absent until somebody said yes. */
  readonly executedAction?: Action;
  readonly executedFrom?: ExecutedFrom;
  /** The order for the gateway: absent in the journal once the call has its outcome. */
  readonly writ?: string;
  /** When the writ stops working, in milliseconds since 1970. */
  readonly writExpiresAt?: number;
  readonly approvalId: string;
  readonly humanApproval?: { readonly approved: boolean; readonly comment: string };
  /** Whether the answer is out; false only while a person is asked. */
  readonly settled: boolean;
  /** What this decision ends the agent with; empty when it may go on. */
  readonly stopReason: string;
  /** An approved final ended the agent. */
  readonly runEnded: boolean;
}

/** The stop reason of a proposal that came to nothing; undefined when something may go on. */
export function refusalOf(decision: Decision): string | undefined {
  if (decision.stopReason !== '') return decision.stopReason;
  return decision.executedAction === undefined && !decision.runEnded
    ? `supervisor_block:${decision.reason}`
    : undefined;
}

/** In which part of the system a refused proposal stopped (SV-7). */
export function phaseOfRefusal({ verdict, humanApproval, stopReason }: Decision): Phase {
  if (humanApproval !== undefined || stopReason === 'approval_expired') return 'human_approval';
  if (verdict === 'invalid') return 'worker';
  return isStopReason(stopReason) && outcomeOf(stopReason).state !== 'BLOCKED'
    ? 'worker'
    : 'supervisor';
}

/** A decision without its writ, for when the writ is spent. */
export function withoutWrit(decision: Decision): Decision {
  const { writ: _, writExpiresAt: __, ...rest } = decision;
  return rest;
}

const REPORTABLE_ERRORS = ['invalid_action:', 'tool_error:', 'tool_bad_result:'];

/**
 * Whether a model can be told of a stop and go on (AG-10): what policy, a person, a limit of one tool
 * or the tool itself refused. Limits of the run, its budget and its time stop it in any case.
 */
export function isReportableToModel(stopReason: string): boolean {
  if (!isStopReason(stopReason)) return false;
  return (
    outcomeOf(stopReason).state === 'BLOCKED' ||
    REPORTABLE_ERRORS.some((prefix) => stopReason.startsWith(prefix))
  );
}

/** The supervisor's answer to a delegation: plain JSON, since it is journaled. */
export interface SpawnAnswer {
  readonly decision: Decision;
  /** Absent when there is no child. */
  readonly child?: AgentRef;
  /** Why no slot was had, as the cap's own sentence; empty otherwise. */
  readonly slotRefusal: string;
}
