import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ModelInfoSchema, ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { sha256Hex } from '@writ/kernel';
import type { Handlers } from '@writ/rpc';
import type { ModelEntry } from '../domain/catalog/catalog.ts';
import type { RpcContext } from './rpc-context.ts';

/**
 * Lists the usable aliases of the catalog. A caller with an agent token (agent-worker, agent-proxy) receives only the
 * aliases that the token allows; the supervisor receives all.
 */
export function listModels({
  catalog,
  prices,
}: RpcContext): Handlers<typeof ModelService>['listModels'] {
  const describe = async (model: ModelEntry): Promise<MessageInitShape<typeof ModelInfoSchema>> => {
    const known = await prices.pricesOf(model);
    return {
      alias: model.alias,
      providerModel: model.providerModel,
      providerId: sha256Hex(model.baseUrl).slice(0, 16),
      contextWindow: BigInt(model.contextWindow ?? 0),
      ...(known && {
        inputPriceNanoUsdPerMillion: known.input.base,
        outputPriceNanoUsdPerMillion: known.output.base,
      }),
    };
  };
  return async (_request, { caller }) => ({
    models: await Promise.all(catalog.list(caller.agent?.models).map(describe)),
  });
}
