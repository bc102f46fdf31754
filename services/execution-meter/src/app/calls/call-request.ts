import type { CallKey, Priority } from '@writ/kernel';
import type { ChatRequest } from '../../domain/chat/chat.ts';

/** A model call as requested by an agent. */
export interface CallRequest extends CallKey {
  /** Digest of the request; a repeat of the call has the same digest. */
  readonly requestDigest: string;
  /** Lease epoch of the worker (RT-2). */
  readonly epoch: bigint;
  readonly priority: Priority;
  /** Catalog aliases that the token of the agent allows; the tab must allow them, too. */
  readonly tokenModels: readonly string[];
  /** Catalog alias. */
  readonly model: string;
  readonly chat: ChatRequest;
  /** Requested maximum of output tokens; at most the maximum of the model, which is also the default. */
  readonly maxOutputTokens: bigint | undefined;
  /** What happens when the output cap does not fit the budget: the call is refused, or the cap shrinks (EM-3). */
  readonly fit: 'refuse' | 'shrink';
  /** Time limit of one attempt, in milliseconds; at most the timeout of the model, which is also the default. */
  readonly timeoutMs: number | undefined;
  readonly step: number;
  /** Ids of events of the agent that precede the call in its timeline (HK-1). */
  readonly after: readonly string[];
  /** How long the call continues without a reader, in milliseconds. */
  readonly disconnectGraceMs: number;
  /** Whether an empty answer is a failure. */
  readonly requireContent: boolean;
  readonly traceparent: string;
}
