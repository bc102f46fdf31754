import type { WebRequest, WebResponse } from '@writ/rpc/edge';
import { authorize } from '../../app/access/authorize.ts';
import { modelsOf } from '../../app/model/call-model.ts';
import type { ProxyContext } from '../../context.ts';
import { sendJson } from '../json-http.ts';

/**
 * `GET /v1/models`: the aliases that the agent may use, in the format of the OpenAI API, or of the Anthropic API if the
 * request has the header `anthropic-version`.
 */
export function listModels(context: ProxyContext) {
  return async ({ headers }: WebRequest, response: WebResponse): Promise<void> => {
    const { agent } = await authorize(context, { headers });
    const models = modelsOf(agent);
    const isAnthropic = headers['anthropic-version'] !== undefined;
    const list = isAnthropic ? anthropicList(models) : openAiList(models);
    sendJson(response, list, { 'x-writ-run-id': agent.run_id });
  };
}

function openAiList(models: readonly string[]) {
  const data = models.map((id) => ({ id, object: 'model', created: 0, owned_by: 'writ' }));
  return { object: 'list', data };
}

function anthropicList(models: readonly string[]) {
  const data = models.map((id) => ({
    type: 'model',
    id,
    display_name: id,
    created_at: '1970-01-01T00:00:00Z',
  }));
  return { data, has_more: false, first_id: models[0] ?? null, last_id: models.at(-1) ?? null };
}
