import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { OverloadedError } from '@writ/kernel';
import { toConnectError } from '@writ/rpc/connect-errors';
import { expect, it, onTestFinished } from 'vitest';
import { createWritClient } from './index.ts';

it('times out a call when the server accepts connections but does not respond (SYS-4)', async () => {
  const silent = createServer((socket) => socket.resume().on('error', () => undefined));
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  onTestFinished(() => void silent.close());
  const { port } = silent.address() as AddressInfo;
  const { runs } = createWritClient({
    baseUrl: `http://127.0.0.1:${port}`,
    apiKey: 'key',
    timeoutMs: 200,
  });
  await expect(runs.listRuns({})).rejects.toMatchObject({ kind: 'deadline_exceeded' });
});

it('waits for the retry delay of a rejected start even if it exceeds silenceMs (BD-5)', async () => {
  const retryAfterMs = 1_200;
  const full = new OverloadedError('START_QUEUE_FULL', 'Full.', {
    retry_after_ms: String(retryAfterMs),
  });
  const starts: number[] = [];
  const handler = connectNodeAdapter({
    routes: ({ service }) => {
      service(RunService, {
        async *runAgent() {
          starts.push(performance.now());
          const [first = 0] = starts;
          if (performance.now() - first < retryAfterMs) throw toConnectError(full);
          yield { runId: 'run-1' };
        },
      });
    },
  });
  const server = createHttpServer(handler);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const { runs } = createWritClient({
    baseUrl: `http://127.0.0.1:${port}`,
    apiKey: 'key',
    silenceMs: 1_000,
  });
  const start = { requestId: 'req-1', agent: 'worker', goal: 'Go.' };
  const messages = await Array.fromAsync(runs.runAgent({ start }));
  expect(messages).toMatchObject([{ runId: 'run-1' }]);
  expect(starts).toHaveLength(2);
});
