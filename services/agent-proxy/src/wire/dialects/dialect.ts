import type { Dialect as ContractDialect, Finished } from '@writ/contracts/writ/model/v1/model_pb';
import type { Fields } from '@writ/kernel';
import type { ErrorFacts } from '../http-error.ts';
import type { ModelToolCall, ReviewForm } from './review-form.ts';

/**
 * A wire format of model requests, toward clients (AP-2): how events, errors and recorded answers look in it. What the
 * provider sends is passed on as it is.
 */
export interface Dialect {
  readonly name: ContractDialect;
  /** The path of its endpoint. */
  readonly path: string;
  /** Headers of a request that the provider needs. */
  readonly forwarded: readonly string[];
  /** One event of a stream. */
  frame(json: string): string;
  /** Ends a stream that is complete. */
  readonly end: string;
  /** Keeps the connection open while nothing is sent. */
  readonly keepAlive: string;
  /** Whether an event is a complete answer, from a server without streaming. */
  isWhole(head: string): boolean;
  /** A recorded answer, for a repeat: the provider is not asked again. */
  whole(recorded: Recorded): object;
  /** The same as events of a stream. */
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

/** One event whose data names its type, with the name of the event beside it. */
export function namedFrame(json: string): string {
  const { type } = JSON.parse(json) as { readonly type?: unknown };
  return `event: ${typeof type === 'string' ? type : 'message'}\ndata: ${json}\n\n`;
}
