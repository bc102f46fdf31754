import type { AgentRef, Phase } from '@writ/kernel';
import type { ClosedTab } from './closed-tab.ts';
import type { RecordedAction } from './recorded-action.ts';
import type { ExecutedFrom, HumanAnswer, Verdict } from './run-result.ts';

/** What became of a delegation that was approved (AG-3). */
export type HandoffRecord =
  /** There was no slot, in the cap's own sentence. */
  | { readonly kind: 'refused'; readonly sentence: string }
  /** It could not be set up, or the run was over first. */
  | { readonly kind: 'failed'; readonly reason: string }
  | {
      readonly kind: 'made';
      readonly instance: string;
      /** Undefined while the child lives. */
      readonly stopReason: string | undefined;
      /** The answer that was approved. */
      readonly answer: string | undefined;
    };

/** What was decided on one proposal. */
export interface DecisionRecord {
  readonly agent: AgentRef;
  readonly callId: string;
  /** Zero for a composed final. */
  readonly step: number;
  readonly verdict: Verdict;
  readonly reason: string;
  readonly rawText: string | undefined;
  /** Undefined when the proposal was no action. */
  readonly action: RecordedAction | undefined;
  readonly revisedAction: RecordedAction | undefined;
  /** Undefined until somebody said yes. */
  readonly executedAction: RecordedAction | undefined;
  readonly executedFrom: ExecutedFrom | undefined;
  readonly stopReason: string | undefined;
  /** Undefined for what is no delegation, and for one that was never asked for again after a yes. */
  readonly handoff?: HandoffRecord | undefined;
  /** What a person said; undefined when nobody was asked or nobody answered. */
  readonly human: HumanAnswer | undefined;
}

/** What became of one tool call: its receipt of the highest revision. */
export interface ReceiptRecord {
  readonly instance: string;
  readonly callId: string;
  readonly status: 'ok' | 'error' | 'refused' | 'unknown' | 'void';
  readonly stopReason: string | undefined;
  /** The content whose digest the receipt holds. */
  readonly observation: string | undefined;
}

/** How the run's root ended. */
export interface EndingRecord {
  readonly instance: string;
  readonly stopReason: string;
  readonly phase: Phase | undefined;
  readonly callId: string | undefined;
  readonly answer: string | undefined;
  readonly detail: string | undefined;
  readonly unverified: boolean;
}

/** Everything that a result is made of; nothing in it is only a worker's word but the ending's detail. */
export interface ResultRecords {
  readonly ending: EndingRecord;
  /** In the order of decisions. */
  readonly decisions: readonly DecisionRecord[];
  readonly receipts: readonly ReceiptRecord[];
  /** The root's closed tab; undefined when it never had one. */
  readonly tab: ClosedTab | undefined;
}
