import { fieldsOf, omitUndefined } from '@writ/kernel';
import OpenAI from 'openai';
import type { ModelEntry } from '../../domain/catalog/catalog.ts';
import type { Dialect } from '../../domain/dialects/dialect.ts';
import { DIALECTS } from '../../domain/dialects/index.ts';
import { OutputLimit } from '../output-limit.ts';
import type { Attempt, AttemptOutcome, Provider } from '../provider.ts';
import { providerHeaders } from '../provider-headers.ts';
import { AnswerBuilder } from './answer-builder.ts';
import {
  AnswerFailedError,
  attemptFailure,
  BAD_RESPONSE,
  CONNECTION_LOST,
  TIMED_OUT,
} from './attempt-failure.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { chatParams } from './chat-params.ts';
import { readEvents } from './event-stream.ts';

/**
 * Creates the provider for all dialects, with and without streaming (EM-8, AP-2). It disables the retries of the SDK,
 * and closes the connection when an attempt is aborted.
 */
export function createModelProvider(): Provider {
  const clients = new OpenAiClients();
  return async (attempt) => {
    const { model, signal } = attempt;
    const dialect = DIALECTS[attempt.chat.native?.dialect ?? 'chat_completions'];
    const body = bodyOf(attempt, dialect);
    const builder = new AnswerBuilder(dialect, model.providerModel);
    const stop = new AbortController();
    const abort = () => stop.abort(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    let hasTimedOut = false;
    const timer = setTimeout(() => {
      hasTimedOut = true;
      stop.abort(new Error('The attempt has exceeded its time limit.'));
    }, attempt.timeoutMs);
    // A partial answer is known only with streaming; otherwise the answer is known once it is complete.
    const isKnown = () => body.stream === true || builder.hasAnswer;
    const partial = () => (isKnown() ? builder.partial : undefined);
    const used = () => ({ partial: partial(), promptUsage: builder.promptUsage });
    const ended = (): AttemptOutcome | undefined => {
      if (signal.aborted) return { type: 'aborted', ...used(), sent: true };
      if (!hasTimedOut) return undefined;
      return { type: 'failed', failure: TIMED_OUT, ...used(), usage: builder.usage };
    };
    try {
      const client = clients.for(model, attempt.apiKey);
      if (signal.aborted) abort();
      await receive({ client, attempt, body, dialect, builder, signal: stop.signal });
    } catch (error) {
      const failure = attemptFailure(error);
      return ended() ?? { type: 'failed', failure, ...used(), usage: builder.usage };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    }
    return ended() ?? conclude(builder);
  };
}

interface Receiving {
  readonly client: OpenAI;
  readonly attempt: Attempt;
  readonly body: RequestBody;
  readonly dialect: Dialect;
  readonly builder: AnswerBuilder;
  readonly signal: AbortSignal;
}

async function receive(receiving: Receiving): Promise<void> {
  const { client, attempt, body, dialect, builder, signal } = receiving;
  const options = {
    body,
    signal,
    // The timer in `createModelProvider` fires first and also limits the time to receive the body.
    timeout: attempt.timeoutMs + 1_000,
    headers: headersOf(attempt),
  };
  const { native } = attempt.chat;
  if (body.stream !== true) {
    const answer: unknown = await client.post(dialect.path, options);
    if (!isObject(answer)) return;
    const part = dialect.wholeOf(fieldsOf(answer));
    builder.add(part);
    if (part.hasFailed === true) throw new AnswerFailedError();
    if (part.text !== undefined) attempt.onText(part.text);
    if (native !== undefined) attempt.onEvent(JSON.stringify(answer), true);
    return;
  }
  const limit = new OutputLimit(attempt.maxOutputTokens);
  // Streams of the SDK cost more processor time, and close the connection after each answer.
  const response = await client.post(dialect.path, { ...options, stream: true }).asResponse();
  for await (const event of readEvents(response)) {
    if (!isObject(event)) throw new SyntaxError('An event of the stream is not an object.');
    const part = dialect.partOf(fieldsOf(event));
    const content = builder.add(part);
    if (part.hasFailed === true) throw new AnswerFailedError();
    const { text = '', isForMeter = false, isLast = false } = part;
    if (text !== '') attempt.onText(text);
    const isForCaller = native !== undefined && (native.includeUsage || !isForMeter);
    if (isForCaller) attempt.onEvent(JSON.stringify(event), isLast);
    // The return leaves the loop early, which closes the connection.
    if (await limit.exceedsWith(content)) {
      const events = builder.cut(event);
      if (native !== undefined)
        for (const end of events) attempt.onEvent(JSON.stringify(end), true);
      return;
    }
  }
}

interface RequestBody {
  readonly stream?: unknown;
}

function bodyOf(attempt: Attempt, dialect: Dialect): RequestBody {
  const { chat, model, maxOutputTokens, mayStore } = attempt;
  if (chat.native === undefined) return chatParams(attempt);
  return dialect.bodyFor(chat.native, { model, maxOutputTokens, mayStore });
}

function headersOf({ model, apiKey, chat, requestId, traceparent }: Attempt) {
  return {
    'x-request-id': requestId,
    ...omitUndefined({ traceparent }),
    // Removes the header in which the SDK sends the key; Anthropic's API expects the key in x-api-key.
    ...(model.api === 'anthropic' && { authorization: null }),
    ...providerHeaders({ model, apiKey, native: chat.native }),
  };
}

function conclude(builder: AnswerBuilder): AttemptOutcome {
  if (builder.hasAnswer) {
    // A stream that closed early counts as an answer if it has content (EM-9).
    const hasContent = builder.partial.some((text) => text !== '');
    if (builder.isFinished || hasContent) {
      const { terms, usage, promptUsage, issuedIds } = builder;
      return { type: 'answered', ...builder.build(), terms, usage, promptUsage, issuedIds };
    }
  }
  const failure = builder.hasAnswer ? CONNECTION_LOST : BAD_RESPONSE;
  const { partial, promptUsage, usage } = builder;
  return { type: 'failed', failure, partial, promptUsage, usage };
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
