import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { startFaultProxy } from './fault-proxy.ts';

it('keeps the order of the bytes when a delay ends', async () => {
  let received = '';
  const server = createServer((socket) => {
    socket.setEncoding('utf8').on('data', (text: string) => {
      received += text;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const proxy = await startFaultProxy(`127.0.0.1:${port}`);
  const [host, proxied] = proxy.address.split(':');
  const client = connect({ host: host ?? '', port: Number(proxied), noDelay: true });
  onTestFinished(async () => {
    client.destroy();
    await proxy.close();
    server.close();
  });
  await once(client, 'connect');
  client.write('a');
  await expect.poll(() => received).toBe('a');
  proxy.fail({ delayMs: 1_000 });
  client.write('b');
  await expect.poll(() => proxy.held).toBe(1);
  proxy.fail('none');
  client.write('c');
  await expect.poll(() => received.length).toBe(3);
  expect(received).toBe('abc');
});
