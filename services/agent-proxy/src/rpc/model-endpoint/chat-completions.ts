import { Dialect, type Finished } from '@writ/contracts/writ/model/v1/model_pb';
import { formatUsd, InvalidRequestError, isJsonObject, parseJsonStrict } from '@writ/kernel';
import type { WebRequest, WebResponse } from '@writ/rpc';
import { authorize, beginRequest, endRequest } from '../../app/access/authorize.ts';
import { callModel, type ModelCall, type ModelRequest } from '../../app/model/call-model.ts';
import type { ProxyContext } from '../../context.ts';
import { chatCompletion, chatCompletionChunks } from '../../wire/chat-completion.ts';
import { httpErrorOf } from '../../wire/openai-error.ts';
import { bodyOf, EventStream, sendError, sendJson } from './respond.ts';

/** What this endpoint reads of a request; the meter reads the rest. */
interface ChatRequest {
  readonly model: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

/** `POST /v1/chat/completions`: passed through, metered; streamed or not (AP-2). */
export function chatCompletions(context: ProxyContext) {
  return async (request: WebRequest, response: WebResponse): Promise<void> => {
    const { headers } = request;
    const bytes = bodyOf(request);
    const authorized = await authorize(context, { headers, body: bytes });
    const { agent } = authorized;
    const open = beginRequest(context, authorized);
    response.once('close', () => {
      if (!response.writableEnded) open.abort(new Error('the client disconnected'));
    });
    try {
      const body = await bytes();
      const asked = readChatRequest(body);
      const call = await callModel(context, agent, modelRequest(request, asked, body), open);
      const answer = { asked, call, runId: agent.run_id };
      try {
        if (asked.stream) await streamAnswer(context, answer, response);
        else await sendAnswer(answer, response);
      } catch (error) {
        sendError(response, httpErrorOf(error, headers['user-agent']));
      }
      // The client has its answer, or the reason why there is none: an equal request is a new one.
      if (!response.destroyed) await call.delivered();
    } finally {
      await endRequest(context, authorized, open);
    }
  };
}

function modelRequest(
  { headers }: WebRequest,
  { model }: ChatRequest,
  body: Uint8Array<ArrayBuffer>,
): ModelRequest {
  return {
    model,
    dialect: Dialect.OPENAI_CHAT,
    body,
    idempotencyKey: String(headers['idempotency-key'] ?? ''),
    isRetry: Number(headers['x-stainless-retry-count'] ?? 0) > 0,
  };
}

interface Answer {
  readonly asked: ChatRequest;
  readonly call: ModelCall;
  readonly runId: string;
}

async function streamAnswer(
  { config }: ProxyContext,
  { asked, call, runId }: Answer,
  response: WebResponse,
): Promise<void> {
  const stream = new EventStream(response, config.slowReaderMs);
  const ids = idsOf(runId, call);
  for await (const event of call.events) {
    if (event.type === 'event' && !isWhole(event.json)) {
      stream.begin(ids);
      await stream.send(event.json);
    }
    if (event.type !== 'finished' || event.finished.failure !== undefined) continue;
    if (!stream.hasBegun) {
      const { finished } = event;
      stream.begin({ ...ids, ...costOf(finished) });
      const chunks = chatCompletionChunks(finished, call.callId, asked.model, asked.includeUsage);
      for (const chunk of chunks) await stream.send(JSON.stringify(chunk));
    }
    stream.end();
  }
}

async function sendAnswer({ asked, call, runId }: Answer, response: WebResponse): Promise<void> {
  let native: Uint8Array | undefined;
  for await (const event of call.events) {
    if (event.type === 'event') native = event.json;
    else if (event.finished.failure === undefined) {
      const body = native ?? chatCompletion(event.finished, call.callId, asked.model);
      sendJson(response, body, { ...idsOf(runId, call), ...costOf(event.finished) });
    }
  }
}

/** A server without streaming sends one completion, which is sent on as chunks. */
function isWhole(json: Uint8Array): boolean {
  const head = Buffer.from(json).toString('utf8', 0, 512);
  return head.includes('"object":"chat.completion"');
}

function idsOf(runId: string, { callId }: ModelCall): Record<string, string> {
  return { 'x-request-id': callId, 'x-writ-run-id': runId, 'x-writ-call-id': callId };
}

function costOf({ costNanoUsd, replayed }: Finished): Record<string, string> {
  return {
    'x-writ-cost-usd': formatUsd(costNanoUsd),
    ...(replayed && { 'x-writ-replayed': 'true' }),
  };
}

function readChatRequest(body: Uint8Array): ChatRequest {
  const parsed = parseJsonStrict(body, { field: 'body', maxBytes: body.byteLength, maxDepth: 64 });
  if (!isJsonObject(parsed)) throw invalid('body', 'must be a JSON object');
  const { model, stream, stream_options: options } = parsed;
  if (typeof model !== 'string' || !/^[a-zA-Z0-9._:/-]{1,128}$/.test(model)) {
    throw invalid('model', 'must be the alias of a model');
  }
  const includeUsage = isJsonObject(options) && options.include_usage === true;
  return { model, stream: stream === true, includeUsage };
}

function invalid(field: string, rule: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_CHAT_REQUEST', `${field} ${rule}.`, { field });
}
