import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
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
