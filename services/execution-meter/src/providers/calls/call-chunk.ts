import type { ChatAnswer } from '../../domain/chat/chat.ts';
import type { CallFailure } from '../../domain/chat/failure.ts';
import type { TokenUsage } from '../../domain/ledger/spending.ts';

/** What a call tells whoever listens. */
export type CallChunk =
  | { readonly type: 'attempt'; readonly attempt: number; readonly providerModel: string }
  | { readonly type: 'text'; readonly text: string }
  | ({ readonly type: 'finished' } & CallEnd);

/** How a call ended. */
export interface CallEnd {
  /** Absent when it failed. */
  readonly answer: ChatAnswer | undefined;
  /** Absent when there is an answer. */
  readonly failure: CallFailure | undefined;
  /** All attempts together. */
  readonly usage: TokenUsage;
  readonly cost: bigint;
  readonly estimated: boolean;
  readonly attempts: number;
  /** It was recorded before; nothing more was paid. */
  readonly replayed: boolean;
  readonly nearBudget: boolean;
  /** What the run has cost so far. */
  readonly runCost: bigint;
  readonly warnings: readonly string[];
  readonly fittedOutput: bigint;
}
