import type { ServerResponse } from 'node:http';
import type { ChatRequest } from './chat-request.ts';
import { completionOf } from './completion.ts';
import { type Conversation, conversationOf, describeConversation, matchEntry } from './match.ts';
import { PlaceholderError } from './placeholder.ts';
import type { LoggedRequest, RequestLog } from './request-log.ts';
import type { Reply, Script } from './script.ts';
import { pause, writeBody, writeError, writeStream } from './write-reply.ts';

/** A chat request and its context. */
export interface Exchange {
  readonly response: ServerResponse;
  readonly chat: ChatRequest;
  readonly script: Script;
  readonly log: RequestLog;
  readonly now: Date;
  /** Empty when the client sent none. */
  readonly requestId: string;
  /** Empty when the client sent none. */
  readonly traceparent: string;
}

/**
 * Answers a chat request from its script and records the outcome in the log. A request that no entry matches, or that
 * lacks the value for a placeholder of the reply, is answered with status 500 and a description of the request.
 */
export async function answerChat(exchange: Exchange): Promise<void> {
  const { response, chat, script, log, now } = exchange;
  const disconnect = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) disconnect.abort();
  });
  const conversation = conversationOf(chat);
  const entry = matchEntry(script, conversation, (index) => log.used(script.name, index));
  const note = log.open({
    time: now.toISOString(),
    script: script.name,
    model: chat.model,
    entry: entry ?? null,
    stream: chat.stream,
    digest: chat.digest,
    request_id: exchange.requestId === '' ? null : exchange.requestId,
    traceparent: exchange.traceparent === '' ? null : exchange.traceparent,
  });
  const reply = entry === undefined ? undefined : script.entries[entry]?.reply;
  try {
    note(
      reply === undefined
        ? fail(exchange, `has no entry for ${describeConversation(conversation)}`)
        : await send(exchange, reply, conversation, disconnect.signal),
    );
  } catch (error) {
    if (error instanceof PlaceholderError) {
      const asked = describeConversation(conversation);
      note(
        fail(
          exchange,
          `cannot fill the placeholders of entry ${entry}: ${error.message} in ${asked}`,
        ),
      );
      return;
    }
    // A write can fail before the `close` event of the connection.
    const aborted = disconnect.signal.aborted || response.destroyed;
    note(aborted ? 'aborted' : 'failed');
    if (!aborted) throw error;
  }
}

async function send(
  { response, chat, script, now }: Exchange,
  reply: Reply,
  conversation: Conversation,
  signal: AbortSignal,
): Promise<LoggedRequest['outcome']> {
  const completion = completionOf(
    reply,
    { request: chat, conversation, values: script.values },
    now,
  );
  if (reply.error !== undefined) {
    await pause(reply.delay_ms, signal);
    const { status, message, code, retry_after: retryAfter } = reply.error;
    writeError(response, {
      status,
      message,
      ...(code === undefined ? {} : { code }),
      ...(retryAfter === undefined ? {} : { retryAfter }),
    });
    return 'failed';
  }
  return chat.stream
    ? writeStream(response, completion, { reply, includeUsage: chat.includeUsage, signal })
    : writeBody(response, completion, reply, signal);
}

function fail({ response, script }: Exchange, problem: string): LoggedRequest['outcome'] {
  const message = `Simulator script "${script.name}" ${problem}.`;
  writeError(response, { status: 500, message, code: 'simulator_no_match' });
  return 'failed';
}
