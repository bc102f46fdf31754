import { InvalidRequestError, isWritError, type JsonObject, wrapUnknown } from '@writ/kernel';
import type { WebHook, WebRequest, WebResponse } from '@writ/rpc';
import { authorize, beginRequest, endRequest } from '../../app/access/authorize.ts';
import { recordClientResult } from '../../app/client-tools/record-result.ts';
import { reviewHookedCall } from '../../app/client-tools/review-hooked-call.ts';
import type { ProxyContext } from '../../context.ts';
import {
  hookAnswer,
  hookedCallOf,
  hookedResultOf,
  hookHeadersOf,
  isResult,
  readHookBody,
} from '../../wire/claude-code-hook.ts';
import { assertHost } from '../assert-host.ts';
import { bodyOf, sendJson } from '../json-http.ts';

const PATH = '/hooks/claude-code';
/** The timeout of the hook in the settings of Claude Code, in seconds; its default here. */
const TIMEOUT_HEADER = 'x-writ-hook-timeout';
const DEFAULT_TIMEOUT_S = 60;
/** The answer must arrive before the client gives up. */
const MARGIN_S = 10;

/**
 * The hook endpoint: Claude Code sends each tool call before it executes it, and obeys the answer (AP-5). Every failure is
 * answered with 200 and `deny`, because the client executes the call after any other status.
 */
export function hookEndpoint(context: ProxyContext): WebHook {
  const { log } = context.telemetry;
  const failed = (thrown: unknown): JsonObject => {
    const error = isWritError(thrown) ? thrown : wrapUnknown(thrown);
    if (error.kind === 'internal') log.warn({ err: error }, 'hook of an external agent failed');
    return hookAnswer({ decision: 'deny', reason: error.message });
  };
  return (request, response) => {
    const [path = ''] = (request.url ?? '').split('?', 1);
    if (path !== PATH) return false;
    void serve(context, request, response)
      .catch(failed)
      .then((answer) => {
        if (!response.destroyed) sendJson(response, answer);
      });
    return true;
  };
}

async function serve(
  context: ProxyContext,
  request: WebRequest,
  response: WebResponse,
): Promise<JsonObject> {
  assertHost(request, context.config.hosts);
  if (request.method !== 'POST') {
    throw new InvalidRequestError('HOOK_BODY_INVALID', 'A hook is sent with POST.', {
      field: 'method',
    });
  }
  const holdMs = holdMsOf(request);
  const body = readHookBody(await bodyOf(request)());
  if (isResult(body)) return await recordResult(context, request, body);
  const authorized = await authorize(context, { headers: headersWith(request, body) });
  const open = beginRequest(context, authorized);
  response.once('close', () => {
    if (!response.writableFinished) open.abort(new Error('the client disconnected'));
  });
  try {
    const verdict = await reviewHookedCall(context, authorized.key, hookedCallOf(body), {
      holdMs,
      signal: open.signal,
      onWait: (isWaiting) => {
        open.isWaiting = isWaiting;
      },
    });
    return hookAnswer(verdict);
  } finally {
    await endRequest(context, authorized, open);
  }
}

/** The call was executed already: whatever fails is logged, and Claude Code continues. */
async function recordResult(
  context: ProxyContext,
  request: WebRequest,
  body: JsonObject,
): Promise<JsonObject> {
  try {
    const { key } = await authorize(context, { headers: headersWith(request, body) });
    await recordClientResult(context, key, hookedResultOf(body));
  } catch (error) {
    context.telemetry.log.warn({ err: error }, 'result of a client tool not recorded');
  }
  return {};
}

/** A hook belongs to the run of its session and to its sub-agent, like the model calls that name them in headers. */
function headersWith({ headers }: WebRequest, body: JsonObject): WebRequest['headers'] {
  return { ...hookHeadersOf(body), ...headers };
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
