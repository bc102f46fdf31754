import OpenAI from 'openai';
import type { ModelEntry } from '../../domain/catalog/catalog.ts';
import type { NativeChat } from '../../domain/chat/chat.ts';
import { OutputLimit } from '../output-limit.ts';
import type { Attempt, AttemptOutcome, Provider } from '../provider.ts';
import { AnswerBuilder } from './answer-builder.ts';
import { attemptFailure, BAD_RESPONSE, CONNECTION_LOST, TIMED_OUT } from './attempt-failure.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { chatParams } from './chat-params.ts';

/**
 * Creates the provider for OpenAI-compatible chat completions (EM-8): streamed or not, without the
 * retries of the SDK, and with an abort signal that closes the connection.
 */
export function createOpenAiProvider(): Provider {
  const clients = new OpenAiClients();
  return async (attempt) => {
    const { model, signal } = attempt;
    const builder = new AnswerBuilder(model.providerModel);
    const timedOut = new AbortController();
    const timer = setTimeout(() => timedOut.abort(), attempt.timeoutMs);
    const partial = () => (model.streaming ? builder.partial : undefined);
    const ended = (): AttemptOutcome | undefined => {
      if (signal.aborted) return { type: 'aborted', partial: partial(), sent: true };
      if (!timedOut.signal.aborted) return undefined;
      return { type: 'failed', failure: TIMED_OUT, partial: partial(), usage: builder.usage };
    };
    try {
      const client = clients.for(model, attempt.apiKey);
      await receive(client, attempt, builder, AbortSignal.any([signal, timedOut.signal]));
    } catch (error) {
      const failure = attemptFailure(error);
      return ended() ?? { type: 'failed', failure, partial: partial(), usage: builder.usage };
    } finally {
      clearTimeout(timer);
    }
    // The SDK ends an aborted stream without an error.
    return ended() ?? conclude(builder);
  };
}

async function receive(
  client: OpenAI,
  attempt: Attempt,
  builder: AnswerBuilder,
  signal: AbortSignal,
): Promise<void> {
  const params = chatParams(attempt);
  const options = {
    signal,
    // The timer above fires first and also covers the body.
    timeout: attempt.timeoutMs + 1_000,
    headers: {
      'x-request-id': attempt.requestId,
      ...(attempt.traceparent !== undefined && { traceparent: attempt.traceparent }),
    },
  };
  if (params.stream !== true) {
    const completion: unknown = await client.chat.completions.create(params, options);
    if (!isObject(completion)) return;
    attempt.onText(builder.addCompletion(completion));
    if (attempt.chat.native !== undefined) attempt.onEvent(JSON.stringify(completion));
    return;
  }
  const limit = new OutputLimit(attempt.maxOutputTokens);
  const stream = await client.chat.completions.create(params, options);
  for await (const chunk of stream) {
    if (!isObject(chunk)) throw new SyntaxError('A chunk of the stream is not an object.');
    const { text, content } = builder.addChunk(chunk);
    if (text !== '') attempt.onText(text);
    if (isForCaller(chunk, attempt.chat.native)) attempt.onEvent(JSON.stringify(chunk));
    // Leaving the loop closes the connection.
    if (await limit.exceedsWith(content)) {
      if (attempt.chat.native !== undefined) attempt.onEvent(JSON.stringify(CUT));
      return builder.cut();
    }
  }
}

/** Tells the caller of a native request that its stream was cut at the requested limit. */
const CUT = {
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta: {}, finish_reason: 'length' }],
};

/** The meter asks for the usage itself; a caller that did not ask gets no chunk of it. */
function isForCaller(chunk: object, native: NativeChat | undefined): boolean {
  if (native === undefined) return false;
  const { choices } = chunk as { readonly choices?: unknown };
  return native.includeUsage || !(Array.isArray(choices) && choices.length === 0);
}

function conclude(builder: AnswerBuilder): AttemptOutcome {
  if (builder.hasAnswer) {
    // Content of a stream that closed early is an answer (EM-9).
    const hasContent = builder.partial.some((text) => text !== '');
    if (builder.isFinished || hasContent) {
      const { terms, usage } = builder;
      return { type: 'answered', ...builder.build(), terms, usage };
    }
  }
  const failure = builder.hasAnswer ? CONNECTION_LOST : BAD_RESPONSE;
  return { type: 'failed', failure, partial: builder.partial, usage: builder.usage };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

const MAX_CLIENTS = 256;

/** SDK clients by provider and key; calls to one origin share connections. */
class OpenAiClients {
  readonly #clients = new Map<string, OpenAI>();

  /** Returns the client for the provider of a model. */
  for({ baseUrl }: ModelEntry, apiKey: string | undefined): OpenAI {
    const name = `${baseUrl} ${apiKey ?? ''}`;
    const known = this.#clients.get(name);
    if (known !== undefined) return known;
    if (this.#clients.size >= MAX_CLIENTS) this.#clients.clear();
    const client = new OpenAI({
      baseURL: baseUrl,
      // The SDK requires a key; servers without authentication ignore it.
      apiKey: apiKey ?? 'none',
      adminAPIKey: null,
      organization: null,
      project: null,
      webhookSecret: null,
      // Retries of the SDK would not be metered (EM-8).
      maxRetries: 0,
      logLevel: 'off',
      fetch: boundedFetch,
    });
    this.#clients.set(name, client);
    return client;
  }
}
