import type { ModelEntry } from '../domain/catalog/catalog.ts';
import type { ChatAnswer, ChatRequest, IssuedIds, ProviderTerms } from '../domain/chat/chat.ts';
import type { AttemptFailure } from '../domain/chat/failure.ts';
import type { TokenUsage } from '../domain/ledger/spending.ts';

/** One attempt of a model call. */
export interface Attempt {
  readonly model: ModelEntry;
  /** Undefined for providers without authentication. */
  readonly apiKey: string | undefined;
  readonly chat: ChatRequest;
  readonly maxOutputTokens: bigint;
  /** Time limit in milliseconds. */
  readonly timeoutMs: number;
  /** W3C traceparent of the attempt span; undefined outside a trace. */
  readonly traceparent: string | undefined;
  /** Request id for the logs of the provider. */
  readonly requestId: string;
  /** Aborts the request to the provider. */
  readonly signal: AbortSignal;
  /** Receives the text of the answer in pieces. */
  readonly onText: (text: string) => void;
  /** Whether the provider may keep the answer. */
  readonly mayStore: boolean;
  /**
   * Receives the events of the answer to a native request. The caller of the meter gets events with `isLast` only after
   * the settlement.
   */
  readonly onEvent: (json: string, isLast: boolean) => void;
}

/** Outcome of an attempt. */
export type AttemptOutcome =
  | {
      readonly type: 'answered';
      readonly answer: ChatAnswer;
      readonly terms: ProviderTerms;
      /** Ids in the answer to which later requests of the session can refer. */
      readonly issuedIds?: IssuedIds | undefined;
      /** Usage reported by the provider; undefined when missing or invalid. */
      readonly usage: TokenUsage | undefined;
      /** Prompt usage that the provider reported; used when `usage` is undefined. */
      readonly promptUsage?: TokenUsage | undefined;
      /** One sentence per anomaly. */
      readonly warnings: readonly string[];
    }
  | {
      readonly type: 'failed';
      readonly failure: AttemptFailure;
      /** Text received before the failure. */
      readonly partial: PartialTexts;
      readonly promptUsage?: TokenUsage | undefined;
      readonly usage: TokenUsage | undefined;
    }
  | {
      readonly type: 'aborted';
      readonly partial: PartialTexts;
      /** Prompt usage that the provider reported. */
      readonly promptUsage?: TokenUsage | undefined;
      /** Whether a request was sent. */
      readonly sent: boolean;
    };

/** Received part of an answer; undefined if the answer is not streamed and was not received. */
type PartialTexts = readonly string[] | undefined;

/** Makes one attempt of a model call. Errors of the provider are returned and never thrown. */
export type Provider = (attempt: Attempt) => Promise<AttemptOutcome>;
