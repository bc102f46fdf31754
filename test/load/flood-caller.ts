/** A worker that asks for all the calls that it is ordered at once, and answers with how they ended. */
import { flushCompileCache } from 'node:module';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { isWritError } from '@writ/kernel';
import { createRpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import type { StagedOrder } from './gateway-kill-stage.ts';

/** The calls of one flood. */
export interface FloodOrder {
  readonly address: string;
  readonly serviceToken: string;
  readonly orders: readonly StagedOrder[];
}

process.on('message', (message) => {
  void callAll(message as FloodOrder);
});
process.send?.('ready');
// It ends by kill -9, which would leave the next process nothing.
flushCompileCache();

async function callAll({ address, serviceToken, orders }: FloodOrder): Promise<void> {
  const client = createRpcClient(ToolGatewayService, {
    address,
    telemetry: createTelemetry({ service: 'agent-worker', logLevel: 'silent' }),
    serviceToken: async () => serviceToken,
    timeoutMs: 120_000,
  });
  const endings: Record<string, number> = {};
  const count = (ending: string): void => {
    endings[ending] = (endings[ending] ?? 0) + 1;
  };
  const call = async (order: StagedOrder): Promise<void> => {
    try {
      const { status } = await client.callTool(order, { epoch: 1n });
      count(`status ${status}`);
    } catch (error) {
      count(isWritError(error) ? error.reason : String(error));
    }
  };
  await Promise.all(orders.map(call));
  process.send?.(endings);
}
