import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { DIALECTS } from '../../wire/dialects/index.ts';
import { EventStream } from './respond.ts';

it.each(DIALECTS)(
  'a stream at $path sends its headers before its first event (AP-2)',
  async (dialect) => {
    const server = createServer((_, response) => {
      new EventStream(response, dialect, 3_600_000).begin({ 'x-writ-call-id': 'call-1' });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const request = get({ port, host: '127.0.0.1', agent: false });
    onTestFinished(() => void request.destroy());
    const received = once(request, 'response', { signal: AbortSignal.timeout(10_000) });
    const [response] = (await received) as [IncomingMessage];
    response.on('error', () => undefined);
    expect(response.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'x-writ-call-id': 'call-1',
    });
  },
);
