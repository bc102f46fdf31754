import { ResponseAccess } from '@writ/contracts/writ/model/v1/model_service_pb';
import { InvalidRequestError, NotFoundError } from '@writ/kernel';
import type { WebRequest, WebResponse } from '@writ/rpc/edge';
import { type Authorized, authorize } from '../../app/access/authorize.ts';
import { accessResponse } from '../../app/model/call-model.ts';
import type { ProxyContext } from '../../context.ts';
import { sendJson } from '../json-http.ts';
import { serveUntilDisconnect } from '../serve-until-disconnect.ts';

const PATH = /^\/v1\/responses\/([a-zA-Z0-9_.:-]{1,128})(\/input_items|\/cancel)?$/;
const ACCESS: Readonly<Record<string, ResponseAccess>> = {
  GET: ResponseAccess.READ,
  DELETE: ResponseAccess.DELETE,
  'GET /input_items': ResponseAccess.LIST_INPUT_ITEMS,
  'POST /cancel': ResponseAccess.CANCEL,
};

/**
 * Returns the handler of requests for answers that the provider has stored. Only agents of the session in which an
 * answer was created may read, cancel or delete the answer (AP-2).
 */
export function storedResponses(context: ProxyContext) {
  return (method: string, path: string) => {
    const [, responseId, subpath] = PATH.exec(path) ?? [];
    const access = ACCESS[subpath === undefined ? method : `${method} ${subpath}`];
    if (responseId === undefined || access === undefined) return undefined;
    return async (request: WebRequest, response: WebResponse): Promise<void> => {
      const { headers, url = '' } = request;
      const query = url.slice(path.length + 1);
      assertNoStream(query);
      const authorized = await authorize(context, { headers });
      assertAccessible(authorized, access);
      await serveUntilDisconnect(context, authorized, response, async () => {
        const asked = { responseId, access, query };
        sendJson(response, await accessResponse(context, authorized.key, asked), {
          'x-writ-run-id': authorized.key.runId,
        });
      });
    };
  };
}

/**
 * Rejects all access to a stored response except its deletion when tool calls are reviewed: the provider stores the
 * tool calls as proposed, so the client would receive calls that were not reviewed (AP-5).
 */
function assertAccessible({ agent: { name, review } }: Authorized, access: ResponseAccess): void {
  if (review === null || access === ResponseAccess.DELETE) return;
  throw new NotFoundError(
    'UNSUPPORTED_ENDPOINT',
    `Stored responses of ${name} can only be deleted, because options.client_tools is review and the provider stores them as they were before the review.`,
    { setting: 'options.client_tools' },
  );
}

function assertNoStream(query: string): void {
  if (new URLSearchParams(query).get('stream') !== 'true') return;
  throw new InvalidRequestError(
    'NATIVE_FIELD_NOT_ALLOWED',
    'stream is not supported for a stored response; read it without a stream.',
    { field: 'stream' },
  );
}
