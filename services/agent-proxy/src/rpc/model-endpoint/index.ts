import { NotFoundError } from '@writ/kernel';
import type { WebHook, WebRequest, WebResponse } from '@writ/rpc/edge';
import type { ProxyContext } from '../../context.ts';
import { COUNTED, DIALECTS, dialectOf } from '../../wire/dialects/index.ts';
import { httpErrorOf } from '../../wire/http-error.ts';
import { assertHost } from '../assert-host.ts';
import { listModels } from './list-models.ts';
import { sendError } from './respond.ts';
import { countTokensCalls, serveModelCall } from './serve-model-call.ts';
import { storedResponses } from './stored-responses.ts';

type Endpoint = (request: WebRequest, response: WebResponse) => Promise<void>;

/**
 * The model endpoint: `/v1` of OpenAI and of Anthropic, for unmodified clients (AP-2). Any other path would be
 * unmetered, and is rejected.
 */
export function modelEndpoint(context: ProxyContext): WebHook {
  const endpoints: Readonly<Record<string, Endpoint>> = {
    ...Object.fromEntries(
      DIALECTS.map((dialect) => [`POST ${dialect.path}`, serveModelCall(context, dialect)]),
    ),
    [`POST ${COUNTED.path}/count_tokens`]: countTokensCalls(context, COUNTED),
    'GET /v1/models': listModels(context),
  };
  const stored = storedResponses(context);
  const { hosts } = context.config;
  const { log } = context.telemetry;
  return (request, response) => {
    const [path = ''] = (request.url ?? '').split('?', 1);
    if (!path.startsWith('/v1/')) return false;
    const { method = '' } = request;
    const name = `${method} ${path}`;
    const work = async (): Promise<void> => {
      assertHost(request, hosts);
      const endpoint = endpoints[name] ?? stored(method, path);
      if (endpoint === undefined) throw unsupported(name);
      await endpoint(request, response);
    };
    work().catch((error: unknown) => {
      const answer = httpErrorOf(error, request.headers['user-agent']);
      if (answer.facts.status >= 500)
        log.warn({ err: error }, 'request of an external agent failed');
      sendError(response, dialectOf(path, request.headers), answer);
    });
    return true;
  };
}

function unsupported(name: string): NotFoundError {
  const served = DIALECTS.map(({ path }) => path).join(', ');
  return new NotFoundError(
    'UNSUPPORTED_ENDPOINT',
    `agent-proxy does not serve ${name}; it serves ${served}, /v1/messages/count_tokens, /v1/models, and GET, DELETE and cancel of /v1/responses/{id}.`,
    {},
  );
}
