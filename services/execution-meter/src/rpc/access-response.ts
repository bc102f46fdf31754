import type { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { ResponseAccess } from '@writ/contracts/writ/model/v1/model_service_pb';
import { type Handlers, requireAgent } from '@writ/rpc';
import { accessResponseOf } from '../app/calls/access-response.ts';
import type { StoredResponseAccess } from '../providers/model-call/stored-response.ts';
import type { RpcContext } from './rpc-context.ts';

const ACCESS: Readonly<Partial<Record<ResponseAccess, StoredResponseAccess>>> = {
  [ResponseAccess.READ]: 'read',
  [ResponseAccess.LIST_INPUT_ITEMS]: 'list_input_items',
  [ResponseAccess.CANCEL]: 'cancel',
  [ResponseAccess.DELETE]: 'delete',
};

/** Reads, cancels or deletes an answer that the provider has stored, for the session that received it (AP-2). */
export function accessResponse(
  context: RpcContext,
): Handlers<typeof ModelService>['accessResponse'] {
  return async ({ responseId, access, query }, call) => {
    const { tenant, runId, agent, models: tokenModels } = requireAgent(call);
    const key = { tenant, runId, instance: agent.instance };
    // Message validation rejects values that are not in ACCESS.
    const request = { responseId, access: ACCESS[access] ?? 'read', query };
    const answer = await accessResponseOf(
      context,
      { ...key, tokenModels, ...request },
      call.signal,
    );
    return { dataJson: Buffer.from(JSON.stringify(answer)) };
  };
}
