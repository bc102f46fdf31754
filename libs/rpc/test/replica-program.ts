/** A replica in a separate process: responds with its name, and blocks for the seconds given in the goal. */
import { createTelemetry } from '@writ/telemetry';
import { createRpcServer } from '../src/index.ts';
import { gate, runRoute } from './fixture.ts';

const name = process.argv[2] ?? '';
const HANG = /^hang (\d+) s$/;

const server = await createRpcServer({
  host: '127.0.0.1',
  port: 0,
  routes: [
    runRoute({
      startRun: async ({ goal }) => {
        const seconds = Number(HANG.exec(goal)?.[1] ?? 0);
        // Blocks the event loop.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, seconds * 1_000);
        return { run: { runId: name } };
      },
    }),
  ],
  gate,
  telemetry: createTelemetry({ service: 'replica', logLevel: 'silent' }),
});
server.setServing(true);
console.log(server.address);
