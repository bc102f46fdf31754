/** A worker that makes all calls of a request concurrently and returns the number of calls by outcome. */
import { flushCompileCache } from 'node:module';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { isWritError } from '@writ/kernel';
import { createRpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import type { SignedCall } from './gateway-harness.ts';

/** The calls of a flood. */
export interface FloodRequest {
  readonly address: string;
  readonly serviceToken: string;
  readonly calls: readonly SignedCall[];
}

process.on('message', (message) => {
  void callAll(message as FloodRequest);
});
process.send?.('ready');
// kill -9 ends this process, so the compile cache is written now.
flushCompileCache();

async function callAll({ address, serviceToken, calls }: FloodRequest): Promise<void> {
  const client = createRpcClient(ToolGatewayService, {
    address,
    telemetry: createTelemetry({ service: 'agent-worker', logLevel: 'silent' }),
    serviceToken: async () => serviceToken,
    timeoutMs: 120_000,
  });
  const outcomes: Record<string, number> = {};
  const count = (outcome: string): void => {
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  };
  const call = async (request: SignedCall): Promise<void> => {
    try {
      const { status } = await client.callTool(request, { epoch: 1n });
      count(`status ${status}`);
    } catch (error) {
      count(isWritError(error) ? error.reason : String(error));
    }
  };
  await Promise.all(calls.map(call));
  process.send?.(outcomes);
}
