import type { ModelEntry } from '../domain/catalog/model.ts';
import type { ChatAnswer, ChatRequest } from '../domain/chat/chat.ts';
import type { AttemptFailure } from '../domain/chat/failure.ts';
import type { TokenUsage } from '../domain/ledger/spending.ts';

/** One attempt of a model call. */
export interface Attempt {
  readonly model: ModelEntry;
  /** Undefined for providers that ask for none. */
  readonly apiKey: string | undefined;
  readonly chat: ChatRequest;
  readonly maxOutputTokens: bigint;
  /** Longest wait, in milliseconds. */
  readonly timeoutMs: number;
  /** W3C traceparent of the attempt's span, for providers that trace; undefined outside of a trace. */
  readonly traceparent: string | undefined;
  /** Names the attempt in the provider's own log. */
  readonly requestId: string;
  /** Ends the attempt at the provider's socket. */
  readonly signal: AbortSignal;
  /** Takes the answer's text piece by piece. */
  readonly onText: (text: string) => void;
}

/** What became of an attempt. */
export type AttemptOutcome =
  | {
      readonly type: 'answered';
      readonly answer: ChatAnswer;
      /** What the provider says was used; undefined when it says nothing, or nothing sensible. */
      readonly usage: TokenUsage | undefined;
      /** Anything odd, a sentence each. */
      readonly warnings: readonly string[];
    }
  | {
      readonly type: 'failed';
      readonly failure: AttemptFailure;
      /** What had come until then. */
      readonly partial: PartialTexts;
      readonly usage: TokenUsage | undefined;
    }
  | {
      readonly type: 'aborted';
      readonly partial: PartialTexts;
      /** Whether the provider was asked at all. */
      readonly sent: boolean;
    };

/** The part of an answer that had come; undefined where it cannot be seen, since nothing was streamed. */
type PartialTexts = readonly string[] | undefined;

/** Asks a model once. Never throws for what a provider does. */
export type AskProvider = (attempt: Attempt) => Promise<AttemptOutcome>;
