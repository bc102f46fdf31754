import type { AgentRef, Phase, RunStatus } from '@writ/kernel';
import type { RecordedAction } from './recorded-action.ts';
import type { RunUsage } from './run-usage.ts';

/** What policy said of a proposal. */
export type Verdict = 'approve' | 'revise' | 'block' | 'escalate' | 'invalid';

/** Whose version of an action counts (SV-6). */
export type ExecutedFrom = 'original' | 'supervisor_revised' | 'human_revised';

/** What a person said. */
export interface HumanAnswer {
  readonly approvalId: string;
  readonly approved: boolean;
  readonly comment: string;
  readonly decidedBy: string;
  /** ISO 8601. */
  readonly decidedAt: string;
}

/** One step in one line (SV-7). */
export interface TraceRow {
  /** From 1; zero for a composed final. */
  readonly step: number;
  readonly tool: string;
  /** Absent for a final. */
  readonly argsHash?: string;
  readonly decision: Verdict;
  readonly executedFrom: ExecutedFrom;
  readonly ok: boolean;
  readonly stopReason?: string;
  /** Absent when nobody was asked, or nobody answered. */
  readonly humanApproved?: boolean;
  readonly agent: AgentRef;
  readonly callId: string;
}

/** One executed step in full (SV-7). */
export interface HistoryEntry {
  readonly step: number;
  readonly action: RecordedAction;
  readonly decision: Verdict;
  readonly reason: string;
  readonly revisedAction?: RecordedAction;
  readonly executedAction: RecordedAction;
  readonly executedFrom: ExecutedFrom;
  /** The content whose digest the receipt holds, as JSON; empty when nobody showed it. */
  readonly observationJson: string;
  readonly humanApproval?: HumanAnswer;
  readonly agent: AgentRef;
  readonly callId: string;
}

/** How a run ended, as its supervisor knows it (SV-7). */
export interface RunResult {
  readonly status: RunStatus;
  readonly stopReason: string;
  /** Absent when it did not stop anywhere. */
  readonly phase?: Phase;
  readonly answer: string;
  readonly usage: RunUsage;
  readonly trace: readonly TraceRow[];
  readonly history: readonly HistoryEntry[];
  /** What the model said, when the run stopped because it was no action. */
  readonly rawAction?: string;
  /** The action that the run stopped at. */
  readonly action?: RecordedAction;
  /** One sentence of the worker, which nobody vouches for. */
  readonly workerDetail: string;
  /** The stop reason is only the worker's word. */
  readonly unverified: boolean;
}
