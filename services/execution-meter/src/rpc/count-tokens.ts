import type { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { type Handlers, requireAgent } from '@writ/rpc';
import { countTokensOf } from '../app/calls/count-tokens.ts';
import { readNativeRequest } from '../wire/native-request.ts';
import type { RpcContext } from './rpc-context.ts';

/** Counts the tokens of a native request of the calling agent; the agent is not charged (AP-2). */
export function countTokens(context: RpcContext): Handlers<typeof ModelService>['countTokens'] {
  return async ({ model, native }, call) => {
    const { tenant, runId, agent, models: tokenModels } = requireAgent(call);
    // Message validation requires `native`.
    if (native === undefined) return {};
    const { chat } = readNativeRequest(native);
    const request = { tenant, runId, instance: agent.instance, model, tokenModels, chat };
    const answer = await countTokensOf(context, request, call.signal);
    return { dataJson: Buffer.from(JSON.stringify(answer)) };
  };
}
