import type { AgentRef, ExecutedFrom, Phase, RunStatus, Verdict } from '@writ/kernel';
import type { BusinessOutcome } from '@writ/policy';
import type { RecordedAction } from './recorded-action.ts';
import type { RunUsage } from './run-usage.ts';

/** The answer of an approver. */
export interface HumanAnswer {
  readonly approvalId: string;
  readonly approved: boolean;
  /** What the approver wrote; empty when they wrote nothing. */
  readonly comment: string;
  /** `approved_by_human` or `approved_with_cap:<n>`; empty unless an action was approved. */
  readonly basis: string;
  readonly decidedBy: string;
  /** ISO 8601. */
  readonly decidedAt: string;
}

/** One step of a run (SV-7). */
export interface TraceRow {
  /** From 1; zero for a composed final. */
  readonly step: number;
  readonly tool: string;
  /** Absent unless the action is a tool call. */
  readonly argsHash?: string;
  readonly decision: Verdict;
  readonly executedFrom: ExecutedFrom;
  readonly ok: boolean;
  readonly stopReason?: string;
  /** Absent without an approval or an answer. */
  readonly humanApproved?: boolean;
  /** The risk of the deciding rule or of the tool, whichever is higher; 0 to 1. */
  readonly riskScore: number;
  /** Whether the call achieved its purpose; absent when it was not executed. */
  readonly outcome?: BusinessOutcome;
  readonly agent: AgentRef;
  readonly callId: string;
}

/** One executed step with its content (SV-7). */
export interface HistoryEntry {
  readonly step: number;
  readonly action: RecordedAction;
  readonly decision: Verdict;
  readonly reason: string;
  readonly revisedAction?: RecordedAction;
  readonly executedAction: RecordedAction;
  readonly executedFrom: ExecutedFrom;
  /**
   * The result as JSON: for a tool call, the content that the digest of the receipt covers, empty when no worker sent
   * it; for a delegation, the child's answer or why there is none; for a final, `{"status":"final"}`; empty for a tool
   * that the program of an external agent executes.
   */
  readonly observationJson: string;
  readonly humanApproval?: HumanAnswer;
  readonly agent: AgentRef;
  readonly callId: string;
}

/** The result of a run (SV-7). */
export interface RunResult {
  readonly status: RunStatus;
  readonly stopReason: string;
  /** Absent when the run did not stop in a phase. */
  readonly phase?: Phase;
  readonly answer: string;
  readonly usage: RunUsage;
  readonly trace: readonly TraceRow[];
  readonly history: readonly HistoryEntry[];
  /**
   * The model's text, or the raw value of any other invalid proposal as JSON, when the run stopped because the
   * proposal was not a valid action.
   */
  readonly rawAction?: string;
  /** The action at which the run stopped. */
  readonly action?: RecordedAction;
  /** One sentence that explains the stop reason; empty for `success` and `closed`. */
  readonly detail: string;
  /**
   * The sentence that was recorded with the ending, not verified: from the worker, from the error of a start that
   * failed, or from the reconciler for a lost agent; empty without one.
   */
  readonly workerDetail: string;
  /** Whether the stop reason is only the worker's claim. */
  readonly unverified: boolean;
}
