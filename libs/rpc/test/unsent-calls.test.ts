import { once } from 'node:events';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { UnavailableError } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { expect, it, onTestFinished } from 'vitest';
import { UnsentCallError } from '../src/index.ts';
import { ALLOWED, clientOf, rejection, START, start, TRANSPORTS } from './fixture.ts';

const telemetry = createTelemetry({ service: 'test', logLevel: 'silent' });
const ONCE = { retry: { maxAttempts: 1 } };
const TEXT = 'no replica available: 127.0.0.1:1 cannot be reached (ECONNREFUSED).';

it.each(['serving', 'unchecked'] as const)(
  'a call without a reachable replica fails with UnsentCallError (%s; SYS-4)',
  async (health) => {
    const client = clientOf('127.0.0.1:1', telemetry, { ...ONCE, health });
    const error = await rejection(client.startRun(START, ALLOWED));
    expect(error).toBeInstanceOf(UnsentCallError);
    expect(error).toMatchObject({
      kind: 'unavailable',
      reason: 'UNAVAILABLE',
      message: expect.stringContaining('no replica available: 127.0.0.1:1 '),
    });
  },
);

it.each(TRANSPORTS)(
  'an answer of the server is never an UnsentCallError, whatever the server throws (%s; SYS-4)',
  async (transport) => {
    let thrown: Error = new UnavailableError('UNAVAILABLE', TEXT);
    const { client } = await start(transport, {
      startRun: async () => {
        throw thrown;
      },
    });
    const caller = client(ONCE);
    for (thrown of [thrown, new UnsentCallError('UNAVAILABLE', TEXT)]) {
      const error = await rejection(caller.startRun(START, ALLOWED));
      expect(error).toMatchObject({ kind: 'unavailable', message: TEXT });
      expect(error).not.toBeInstanceOf(UnsentCallError);
    }
  },
);

it('a status without details is never an UnsentCallError, whatever its text (SYS-4)', async () => {
  const server = createServer();
  onTestFinished(() => void server.close());
  server.on('stream', (stream) => {
    const trailers = { 'grpc-status': '14', 'grpc-message': encodeURI(TEXT) };
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc+proto', ...trailers },
      { endStream: true },
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = clientOf(`127.0.0.1:${port}`, telemetry, { ...ONCE, health: 'unchecked' });
  const error = await rejection(client.startRun(START, ALLOWED));
  expect(error).toMatchObject({ kind: 'unavailable', message: expect.stringContaining(TEXT) });
  expect(error).not.toBeInstanceOf(UnsentCallError);
  client.close();
});

it('a call with an earlier attempt that was sent does not fail with UnsentCallError (SYS-4)', async () => {
  let calls = 0;
  const { server, client } = await start('loopback', {
    startRun: async () => {
      calls += 1;
      server.setServing(false);
      throw new UnavailableError('UNAVAILABLE', 'It may have run.');
    },
  });
  const caller = client({ retry: { initialDelayMs: 1, maxAttempts: 2 } });
  const sent = await rejection(caller.startRun(START, { ...ALLOWED, retry: true }));
  expect(sent).toMatchObject({ message: expect.stringContaining('reports NOT_SERVING') });
  expect(sent).not.toBeInstanceOf(UnsentCallError);
  const unsent = await rejection(caller.startRun(START, { ...ALLOWED, retry: true }));
  expect(unsent).toBeInstanceOf(UnsentCallError);
  expect(calls).toBe(1);
});
