import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { type ClosableRpcClient, createRpcClient, createRpcServer, route } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';
import { measuredModel } from './measured-model.ts';
import type { BaselineStores } from './stores.ts';

/** The operations that each call waits for, in this order. */
const CALLS = {
  meter: ['meter', 'model', 'meter'],
  supervisor: ['supervisor'],
  gateway: ['gateway', 'gateway'],
} as const;

/**
 * Starts three servers and returns the bare step: as many RPCs and commits as a governed step, and nothing
 * else.
 *
 * - three sequential unary calls to three servers on loopback, with the client and server of libs/rpc,
 *   grpc-js, protobuf and spans, without tokens and with messages of a few bytes;
 * - in the first call an HTTP request to the model with `fetch`, whose response is read but not parsed;
 * - two, one and two commits in these calls and one commit of the caller.
 */
export async function createBareStep(
  folder: string,
  stores: BaselineStores,
  telemetry: Telemetry,
): Promise<() => Promise<void>> {
  const operations = { ...stores, model: bareQuestion(folder) };
  const clients: ClosableRpcClient<typeof KeyService>[] = [];
  for (const [service, waits] of Object.entries(CALLS)) {
    const server = await createRpcServer({
      host: '127.0.0.1',
      port: 0,
      routes: [
        route(KeyService, {
          getKeys: async () => {
            for (const operation of waits) await operations[operation]();
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

function bareQuestion(folder: string): () => Promise<void> {
  const { baseUrl, providerModel } = measuredModel(folder);
  const messages = [
    { role: 'system', content: 'Count to 1.' },
    { role: 'user', content: 'bare' },
  ];
  const body = JSON.stringify({ model: providerModel, messages, stream: true });
  const headers = { 'content-type': 'application/json' };
  return async () => {
    const answer = await fetch(`${baseUrl}/chat/completions`, { method: 'POST', headers, body });
    if (!answer.ok) throw new Error(`The model answered ${answer.status}.`);
    await answer.text();
  };
}
