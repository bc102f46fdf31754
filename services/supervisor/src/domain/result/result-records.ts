import type { AgentRef, ExecutedFrom, Phase, Verdict } from '@writ/kernel';
import type { BusinessOutcome } from '@writ/policy';
import type { ClosedTab } from './closed-tab.ts';
import type { RecordedAction } from './recorded-action.ts';
import type { HumanAnswer } from './run-result.ts';

/** The outcome of an approved delegation (AG-3). */
export type HandoffRecord =
  /** No slot was available; the sentence names the cap. */
  | { readonly kind: 'refused'; readonly sentence: string }
  /** The child could not be set up, or the run ended first. */
  | { readonly kind: 'failed'; readonly reason: string }
  | {
      readonly kind: 'made';
      readonly instance: string;
      /** Undefined while the child is alive. */
      readonly stopReason: string | undefined;
      /** The approved answer. */
      readonly answer: string | undefined;
    };

/** The decision on one proposal. */
export interface DecisionRecord {
  readonly agent: AgentRef;
  readonly callId: string;
  /** Zero for a composed final. */
  readonly step: number;
  readonly verdict: Verdict;
  readonly reason: string;
  /** 0 to 1. */
  readonly risk: number;
  /** Whether the action is a delegation or a call of a tool that is not read-only. */
  readonly hasEffect: boolean;
  readonly rawText: string | undefined;
  /** Undefined when the proposal was not parsed, or is not a valid action. */
  readonly action: RecordedAction | undefined;
  readonly revisedAction: RecordedAction | undefined;
  /** Undefined until the action is approved. */
  readonly executedAction: RecordedAction | undefined;
  readonly executedFrom: ExecutedFrom | undefined;
  readonly stopReason: string | undefined;
  /** Undefined for other actions, and for a delegation whose agent did not repeat SpawnChild after the approval. */
  readonly handoff?: HandoffRecord | undefined;
  /** The answer of the approver; undefined without an approval or an answer. */
  readonly human: HumanAnswer | undefined;
}

/** The outcome of one tool call: its receipt of the highest revision. */
export interface ReceiptRecord {
  readonly instance: string;
  readonly callId: string;
  readonly status: 'ok' | 'error' | 'refused' | 'unknown' | 'void';
  /** Whether the call achieved its purpose; undefined when it was not executed. */
  readonly outcome: BusinessOutcome | undefined;
  readonly stopReason: string | undefined;
  /** The content that the digest of the receipt covers. */
  readonly observation: string | undefined;
}

/** How the root ended. */
export interface EndingRecord {
  readonly instance: string;
  readonly stopReason: string;
  readonly phase: Phase | undefined;
  readonly callId: string | undefined;
  readonly answer: string | undefined;
  readonly detail: string | undefined;
  readonly unverified: boolean;
}

/**
 * The records from which a result is built. Three fields of the ending may be unverified claims of the worker: `detail`
 * always, `phase` when no decision or receipt confirms it, and `stopReason` when `unverified` is true.
 */
export interface ResultRecords {
  readonly ending: EndingRecord;
  /** In the order of decisions. */
  readonly decisions: readonly DecisionRecord[];
  readonly receipts: readonly ReceiptRecord[];
  /** The closed tab of the root; undefined when it had none. */
  readonly tab: ClosedTab | undefined;
}
