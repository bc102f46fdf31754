/**
 * The baseline of a service: an RPC that does nothing. With the key id `commit` it inserts one row, and with
 * `two-commits` two rows, and waits after each insert until the row is durable.
 */
import { once } from 'node:events';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { createRpcServer, route } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { openEchoStore } from './echo-store.ts';

const COMMITS: Readonly<Record<string, number>> = { commit: 1, 'two-commits': 2 };

const store = await openEchoStore(process.env.ECHO_FILE);

const server = await createRpcServer({
  host: '127.0.0.1',
  port: 0,
  routes: [
    route(KeyService, {
      getKeys: async ({ keyId }) => {
        for (let commit = 0; commit < (COMMITS[keyId] ?? 0); commit += 1) {
          await store.commit();
        }
        return { service: 'echo' };
      },
    }),
  ],
  gate: async () => ({}),
  telemetry: createTelemetry({ service: 'echo', logLevel: 'silent' }),
});
server.setServing(true);
const terminated = once(process, 'SIGTERM');
console.log(`echo listens on ${server.address}`);
await terminated;
await server.close(0);
await store.close();
