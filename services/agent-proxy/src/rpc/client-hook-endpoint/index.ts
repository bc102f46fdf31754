import {
  InvalidRequestError,
  isWritError,
  type JsonObject,
  type WritError,
  wrapUnknown,
} from '@writ/kernel';
import type { WebHook, WebRequest, WebResponse } from '@writ/rpc/edge';
import { authorize } from '../../app/access/authorize.ts';
import { recordClientResult } from '../../app/client-tools/record-result.ts';
import { reviewHookedCall } from '../../app/client-tools/review-hooked-call.ts';
import type { ProxyContext } from '../../context.ts';
import {
  type HookVerdict,
  hookAnswer,
  hookedCallOf,
  hookedResultOf,
  hookHeadersOf,
  isResult,
  readHookBody,
} from '../../wire/claude-code-hook.ts';
import { codexHookAnswer, codexHookHeadersOf } from '../../wire/codex-hook.ts';
import { assertHost } from '../assert-host.ts';
import { bodyOf, sendJson } from '../json-http.ts';
import { DisconnectError, serveUntilDisconnect } from '../serve-until-disconnect.ts';

/** The parts of hook handling that differ between clients. */
interface HookClient {
  headersOf(body: JsonObject): Readonly<Record<string, string>>;
  answer(verdict: HookVerdict): JsonObject;
}

const CLIENTS: Readonly<Record<string, HookClient>> = {
  '/hooks/claude-code': { headersOf: hookHeadersOf, answer: hookAnswer },
  '/hooks/codex': { headersOf: codexHookHeadersOf, answer: codexHookAnswer },
};
/** Header with the timeout of the hook in the settings of the client, in seconds. */
const TIMEOUT_HEADER = 'x-writ-hook-timeout';
const DEFAULT_TIMEOUT_S = 60;
/** Margin between the response and the timeout of the client, in seconds. */
const MARGIN_S = 10;
/**
 * Reasons of errors that requests cause in normal operation, or without a valid credential; a client can cause any
 * number of them (BD-1).
 */
const ROUTINE: readonly string[] = [
  'RUN_ENDED',
  'HALTED',
  'TOO_MANY_REQUESTS',
  'DRAINING',
  'TOKEN_MISSING',
  'TOKEN_EXPIRED',
  'HOST_NOT_ALLOWED',
];

/**
 * The hook endpoint: Claude Code and Codex send each tool call before they execute it, and follow the answer (AP-5). A
 * failed review is logged and answered with 200 and `deny`, because the client executes the call after any other
 * status. The clients also send the result of an executed call; a failure to record it is logged and answered with 200
 * and an empty object. A hook whose body cannot be read gets `deny`, because its event is unknown; after the execution
 * of the call, this answer has no effect.
 */
export function hookEndpoint(context: ProxyContext): WebHook {
  const { log } = context.telemetry;
  const failed = (thrown: unknown): JsonObject => {
    const error = errorOf(thrown);
    const level = thrown instanceof DisconnectError ? 'debug' : levelOf(error);
    log[level]({ err: error }, 'hook of an external agent failed');
    return hookAnswer({ decision: 'deny', reason: error.message });
  };
  return (request, response) => {
    const [path = ''] = (request.url ?? '').split('?', 1);
    const client = Object.hasOwn(CLIENTS, path) ? CLIENTS[path] : undefined;
    if (client === undefined) return false;
    void serve(context, client, request, response)
      .catch(failed)
      .then((answer) => {
        if (!response.destroyed) sendJson(response, answer);
      });
    return true;
  };
}

async function serve(
  context: ProxyContext,
  client: HookClient,
  request: WebRequest,
  response: WebResponse,
): Promise<JsonObject> {
  assertHost(request, context.config.hosts);
  assertPost(request);
  const holdMs = holdMsOf(request);
  const body = readHookBody(await bodyOf(request)());
  // A hook names the session and the sub-agent in its body; a model call names them in headers. The body is converted
  // to headers, so that hooks and model calls are assigned to the same run and agent.
  const headers = { ...client.headersOf(body), ...request.headers };
  if (isResult(body)) return await recordResult(context, headers, body);
  const authorized = await authorize(context, { headers });
  const verdict = await serveUntilDisconnect(context, authorized, response, (open) =>
    reviewHookedCall(context, authorized.key, hookedCallOf(body), {
      holdMs,
      signal: open.signal,
      onWait: (isWaiting) => {
        open.isWaiting = isWaiting;
      },
    }),
  );
  return client.answer(verdict);
}

/**
 * Records the result of an executed call. Errors are only logged, because the client has already executed the call and
 * continues.
 */
async function recordResult(
  context: ProxyContext,
  headers: WebRequest['headers'],
  body: JsonObject,
): Promise<JsonObject> {
  try {
    const { key } = await authorize(context, { headers });
    await recordClientResult(context, key, hookedResultOf(body));
  } catch (thrown) {
    const error = errorOf(thrown);
    const level = levelOf(error);
    context.telemetry.log[level]({ err: error }, 'result of a client tool not recorded');
  }
  return {};
}

function errorOf(thrown: unknown): WritError {
  return isWritError(thrown) ? thrown : wrapUnknown(thrown);
}

/** Returns the level at which a failed request is logged. */
function levelOf({ kind, reason, metadata }: WritError): 'debug' | 'warn' {
  // A service that rejects the token of agent-proxy itself is a fault of the installation.
  const isInvalid = reason === 'TOKEN_INVALID' && metadata.token !== 'service';
  return isInvalid || kind === 'cancelled' || ROUTINE.includes(reason) ? 'debug' : 'warn';
}

function assertPost({ method }: WebRequest): void {
  if (method === 'POST') return;
  throw new InvalidRequestError('HOOK_BODY_INVALID', 'Hooks must be sent with POST.', {
    field: 'method',
  });
}

function holdMsOf({ headers }: WebRequest): number {
  const seconds = Number(headers[TIMEOUT_HEADER] ?? DEFAULT_TIMEOUT_S);
  if (Number.isFinite(seconds) && seconds > MARGIN_S && seconds <= 3_600) {
    return (seconds - MARGIN_S) * 1_000;
  }
  throw new InvalidRequestError(
    'HOOK_BODY_INVALID',
    `${TIMEOUT_HEADER} must be the timeout of the hook in seconds, more than ${MARGIN_S} and at most 3600.`,
    { field: TIMEOUT_HEADER },
  );
}
