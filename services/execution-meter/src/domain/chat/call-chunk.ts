import type { TokenUsage } from '../ledger/spending.ts';
import type { ChatAnswer } from './chat.ts';
import type { CallFailure } from './failure.ts';

/** One chunk of the response stream of a call. */
export type CallChunk =
  | { readonly type: 'attempt'; readonly attempt: number; readonly providerModel: string }
  | { readonly type: 'text'; readonly text: string }
  /** One event of a native answer, as JSON. */
  | { readonly type: 'native'; readonly json: string }
  | ({ readonly type: 'finished' } & CallEnd);

/** An encoded hook event with the MAC that authenticates it. */
export interface CarriedEvent {
  readonly event: Uint8Array<ArrayBuffer>;
  readonly mac: Uint8Array<ArrayBuffer>;
}

/** Result of a call. */
export interface CallEnd {
  /** Undefined when the call failed. */
  readonly answer: ChatAnswer | undefined;
  /** Undefined when the call was answered. */
  readonly failure: CallFailure | undefined;
  /** Sum of all attempts. */
  readonly usage: TokenUsage;
  readonly cost: bigint;
  readonly estimated: boolean;
  readonly attempts: number;
  /** Whether the result was recorded by an earlier request and caused no new cost. */
  readonly replayed: boolean;
  readonly nearBudget: boolean;
  /** Cost of the run so far. */
  readonly runCost: bigint;
  readonly warnings: readonly string[];
  readonly fittedOutput: bigint;
  /** The authenticated events of the call for the supervisor. */
  readonly events: readonly CarriedEvent[];
}
