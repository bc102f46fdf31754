import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { type ClosableRpcClient, createRpcClient, createRpcServer, route } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';
import type { FloorStores } from './stores.ts';

/** Commits of each call. */
const CALLS = { meter: 2, supervisor: 1, gateway: 2 } as const;

/**
 * Starts three servers, and gives the bare step:
 *
 * - three unary calls one after the other, to three servers on loopback, with the client and server of
 *   libs/rpc, grpc-js, protobuf and spans included; without tokens, and with messages of a few bytes;
 * - two, one and two commits in these calls and one of the caller's own.
 *
 * It does nothing else, and is less than a step exchanges: the question to the model is not in it.
 */
export async function createBareStep(
  stores: FloorStores,
  telemetry: Telemetry,
): Promise<() => Promise<void>> {
  const clients: ClosableRpcClient<typeof KeyService>[] = [];
  for (const [service, commits] of Object.entries(CALLS)) {
    const commit = stores[service as keyof typeof CALLS];
    const server = await createRpcServer({
      host: '127.0.0.1',
      port: 0,
      routes: [
        route(KeyService, {
          getKeys: async () => {
            for (let n = 0; n < commits; n += 1) await commit();
            return { service };
          },
        }),
      ],
      gate: async () => ({}),
      telemetry,
    });
    server.setServing(true);
    clients.push(createRpcClient(KeyService, { address: server.address, telemetry }));
  }
  return async () => {
    for (const client of clients) await client.getKeys({});
    await stores.worker();
  };
}
