import type { Finished } from '@writ/contracts/writ/model/v1/model_pb';
import {
  formatUsd,
  InvalidRequestError,
  isJsonObject,
  isWritError,
  type JsonObject,
  parseJsonStrict,
} from '@writ/kernel';
import type { WebRequest, WebResponse } from '@writ/rpc/edge';
import { authorize } from '../../app/access/authorize.ts';
import { reviewedCall } from '../../app/client-tools/review-answer.ts';
import {
  callModel,
  countTokens,
  type ModelCall,
  type ModelRequest,
} from '../../app/model/call-model.ts';
import type { ProxyContext } from '../../context.ts';
import type { Dialect } from '../../wire/dialects/dialect.ts';
import { httpErrorOf } from '../../wire/http-error.ts';
import { bodyOf, sendJson } from '../json-http.ts';
import { serveUntilDisconnect } from '../serve-until-disconnect.ts';
import { EventStream, sendError } from './respond.ts';

/** The fields of a request that this endpoint reads; the meter reads the other fields. */
interface RequestFields {
  readonly model: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly body: JsonObject;
}

/**
 * Returns the handler of model calls in a dialect; requests, streamed or not, are passed through and metered (AP-2).
 */
export function serveModelCall(context: ProxyContext, dialect: Dialect) {
  return async (request: WebRequest, response: WebResponse): Promise<void> => {
    const { headers } = request;
    const bytes = bodyOf(request);
    const authorized = await authorize(context, { headers, body: bytes });
    const { agent } = authorized;
    await serveUntilDisconnect(context, authorized, response, async (open) => {
      const body = await bytes();
      const fields = readFields(body);
      const forwardedRequest = modelRequest(request, { dialect, fields, body });
      const reviewed = { dialect, request: forwardedRequest, ...fields };
      const first = await callModel(context, agent, forwardedRequest, open);
      const call = reviewedCall(context, { agent, reviewed, open, first });
      const answer = { dialect, fields, call, runId: agent.run_id };
      try {
        if (fields.stream) await streamAnswer(context, answer, response);
        else await sendAnswer(answer, response);
      } catch (error) {
        sendFailure(context, dialect, { request, response }, error);
        // The call is not marked as delivered, so that a repeat is the same call, with the same approvals.
        if (mustRepeat(error)) return;
      }
      // The client has received its answer or an error, so the next equal request is a new one.
      if (!response.destroyed) await call.delivered();
    });
  };
}

/**
 * Sends an error to the client. Logs errors with an HTTP status of 500 or above, except those after which the client
 * must repeat the request and those after the client has disconnected.
 */
function sendFailure(
  { telemetry }: ProxyContext,
  dialect: Dialect,
  { request, response }: { readonly request: WebRequest; readonly response: WebResponse },
  error: unknown,
): void {
  const failure = httpErrorOf(error, request.headers['user-agent']);
  if (failure.facts.status >= 500 && !mustRepeat(error) && !response.destroyed) {
    telemetry.log.warn({ err: error }, 'request of an external agent failed');
  }
  sendError(response, dialect, failure);
}

/** Whether the client is asked to repeat the request, because it has got no answer yet. */
function mustRepeat(error: unknown): boolean {
  return isWritError(error) && ['APPROVAL_PENDING', 'DRAINING'].includes(error.reason);
}

/** `POST /v1/messages/count_tokens`: the count of the provider, which is free (AP-2). */
export function countTokensCalls(context: ProxyContext, dialect: Dialect) {
  return async (request: WebRequest, response: WebResponse): Promise<void> => {
    const { headers } = request;
    const bytes = bodyOf(request);
    const authorized = await authorize(context, { headers, body: bytes });
    await serveUntilDisconnect(context, authorized, response, async () => {
      const body = await bytes();
      const fields = readFields(body);
      const counted = modelRequest(request, { dialect, fields, body });
      sendJson(response, await countTokens(context, authorized.agent, counted), {
        'x-writ-run-id': authorized.key.runId,
      });
    });
  };
}

interface ReadRequest {
  readonly dialect: Dialect;
  readonly fields: RequestFields;
  readonly body: Uint8Array<ArrayBuffer>;
}

function modelRequest(
  { headers }: WebRequest,
  { dialect, fields, body }: ReadRequest,
): ModelRequest {
  const forwarded = dialect.forwarded.flatMap((name) => {
    const value = headers[name];
    return value === undefined ? [] : [[name, String(value)] as const];
  });
  return {
    model: fields.model,
    dialect: dialect.name,
    headers: Object.fromEntries(forwarded),
    body,
    idempotencyKey: String(headers['idempotency-key'] ?? ''),
    isRetry: Number(headers['x-stainless-retry-count'] ?? 0) > 0,
  };
}

interface Answer {
  readonly dialect: Dialect;
  readonly fields: RequestFields;
  readonly call: ModelCall;
  readonly runId: string;
}

async function streamAnswer(
  { config }: ProxyContext,
  { dialect, fields, call, runId }: Answer,
  response: WebResponse,
): Promise<void> {
  const stream = new EventStream(response, dialect, config.keepAliveMs);
  const ids = idsOf(runId, call);
  let hasEvents = false;
  for await (const event of call.events) {
    if (event.type === 'waiting') stream.begin(ids);
    if (event.type === 'event' && !isWhole(dialect, event.json)) {
      stream.begin(ids);
      hasEvents = true;
      await stream.send(Buffer.from(event.json).toString());
    }
    if (event.type !== 'finished' || event.finished.failure !== undefined) continue;
    if (!hasEvents) {
      const { finished } = event;
      stream.begin({ ...ids, ...costOf(finished) });
      const recorded = { ...fields, finished, callId: call.callId };
      for (const part of dialect.events(recorded)) await stream.send(JSON.stringify(part));
    }
    stream.end();
  }
}

async function sendAnswer(
  { dialect, fields, call, runId }: Answer,
  response: WebResponse,
): Promise<void> {
  let native: Uint8Array | undefined;
  for await (const event of call.events) {
    if (event.type === 'event') native = event.json;
    else if (event.type === 'finished' && event.finished.failure === undefined) {
      const recorded = { ...fields, finished: event.finished, callId: call.callId };
      const body = native ?? dialect.whole(recorded);
      sendJson(response, body, { ...idsOf(runId, call), ...costOf(event.finished) });
    }
  }
}

/**
 * Whether an event is a complete answer, which a provider that does not support streaming sends; the client then gets
 * events that are created from the record of the answer.
 */
function isWhole(dialect: Dialect, json: Uint8Array): boolean {
  return dialect.isWhole(Buffer.from(json).toString('utf8', 0, 512));
}

function idsOf(runId: string, { callId }: ModelCall): Record<string, string> {
  const id = { 'x-request-id': callId, 'request-id': callId };
  return { ...id, 'x-writ-run-id': runId, 'x-writ-call-id': callId };
}

function costOf({ costNanoUsd, replayed }: Finished): Record<string, string> {
  return {
    'x-writ-cost-usd': formatUsd(costNanoUsd),
    ...(replayed && { 'x-writ-replayed': 'true' }),
  };
}

function readFields(body: Uint8Array): RequestFields {
  const parsed = parseJsonStrict(body, { field: 'body', maxBytes: body.byteLength, maxDepth: 64 });
  if (!isJsonObject(parsed)) throw invalid('body', 'must be a JSON object');
  const { model, stream, stream_options: options } = parsed;
  if (typeof model !== 'string' || !/^[a-zA-Z0-9._:/-]{1,128}$/.test(model)) {
    throw invalid('model', 'must be the alias of a model');
  }
  const includeUsage = isJsonObject(options) && options.include_usage === true;
  return { model, stream: stream === true, includeUsage, body: parsed };
}

function invalid(field: string, rule: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_CHAT_REQUEST', `${field} ${rule}.`, { field });
}
