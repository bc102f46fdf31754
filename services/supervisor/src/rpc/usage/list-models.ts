import type { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import type { Handler } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';

/** ListModels: the usable aliases of the catalog, with their prices. */
export function listModels({
  peers,
}: SupervisorContext): Handler<typeof UsageService.method.listModels> {
  return async () => {
    const { models } = await peers.executionMeter.listModels();
    return { models };
  };
}
