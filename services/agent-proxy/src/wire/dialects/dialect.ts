import type { Dialect as ContractDialect, Finished } from '@writ/contracts/writ/model/v1/model_pb';
import type { Fields } from '@writ/kernel';
import type { ErrorFacts } from '../http-error.ts';
import type { ModelToolCall, ReviewForm } from './review-form.ts';

/**
 * A wire format of the model endpoint (AP-2): the encoding of events, errors and recorded answers for clients. Events
 * of the provider are forwarded unchanged unless the answer is reviewed.
 */
export interface Dialect {
  readonly name: ContractDialect;
  /** The path of its endpoint. */
  readonly path: string;
  /** Request headers that are forwarded to the provider. */
  readonly forwarded: readonly string[];
  /** One event of a stream. */
  frame(json: string): string;
  /** Ends a stream that is complete. */
  readonly end: string;
  /** Keeps the connection open while nothing is sent. */
  readonly keepAlive: string;
  /**
   * Whether the event that begins with `head` is a complete answer, which a provider that does not support streaming
   * sends instead of a stream.
   */
  isWhole(head: string): boolean;
  /**
   * Returns a recorded answer as one response body, for a request without streaming when there is no event of the
   * provider to forward: a repeated request, or an answer whose tool calls were refused.
   */
  whole(recorded: Recorded): object;
  /** Returns a recorded answer as events of a stream. */
  events(recorded: Recorded): readonly object[];
  /** The body of an error. */
  error(facts: ErrorFacts): object;
  /** The event that ends a stream with an error. */
  failure(facts: ErrorFacts): object;
  /** How its answers are reviewed. */
  readonly review: ReviewForm;
}

/** An answer that the meter has recorded. */
export interface Recorded {
  readonly finished: Finished;
  readonly callId: string;
  /** The alias that the client asked for. */
  readonly model: string;
  /** Whether the client wants the usage in a stream. */
  readonly includeUsage: boolean;
  /** The request. */
  readonly body: Fields;
}

/** Text, tool calls and tokens of a recorded answer. */
export function partsOf({ finished }: Pick<Recorded, 'finished'>) {
  const parts = finished.message?.parts ?? [];
  const text = parts.map(({ kind }) => (kind.case === 'text' ? kind.value : '')).join('');
  const calls = parts.flatMap(({ kind }): ModelToolCall[] => {
    if (kind.case !== 'toolUse') return [];
    const { toolUseId: id, tool: name, argumentsJson } = kind.value;
    return [{ id, name, argumentsJson }];
  });
  const { usage } = finished;
  const tokens = {
    input: Number(usage?.inputTokens ?? 0n),
    cached: Number(usage?.cachedInputTokens ?? 0n),
    written: Number(usage?.cacheWriteInputTokens ?? 0n),
    output: Number(usage?.outputTokens ?? 0n),
    reasoning: Number(usage?.reasoningTokens ?? 0n),
  };
  return { text, calls, tokens };
}

/** Encodes a server-sent event whose event name is the `type` in its data. */
export function namedFrame(json: string): string {
  const { type } = JSON.parse(json) as { readonly type?: unknown };
  return `event: ${typeof type === 'string' ? type : 'message'}\ndata: ${json}\n\n`;
}
