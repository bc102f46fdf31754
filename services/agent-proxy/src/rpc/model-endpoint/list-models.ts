import type { WebRequest, WebResponse } from '@writ/rpc';
import { authorize } from '../../app/access/authorize.ts';
import type { ProxyContext } from '../../context.ts';
import { sendJson } from './respond.ts';

/** `GET /v1/models`: the aliases that the agent may use. */
export function listModels(context: ProxyContext) {
  return async (request: WebRequest, response: WebResponse): Promise<void> => {
    const { agent } = await authorize(context, request);
    const models = JSON.parse(agent.models) as string[];
    const data = models.map((id) => ({ id, object: 'model', created: 0, owned_by: 'writ' }));
    sendJson(response, { object: 'list', data }, { 'x-writ-run-id': agent.run_id });
  };
}
