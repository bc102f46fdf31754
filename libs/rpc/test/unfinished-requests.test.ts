import { once } from 'node:events';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { createTelemetry } from '@writ/telemetry';
import { expect, it, onTestFinished } from 'vitest';
import { createRpcServer } from '../src/index.ts';

it('ends a call of an internal port whose request never ends, and frees its stream (BD-1)', async () => {
  const server = await createRpcServer({
    host: '127.0.0.1',
    port: 0,
    routes: [],
    gate: async () => ({}),
    telemetry: createTelemetry({ service: 'test', logLevel: 'silent' }),
    limits: { maxUnaryMs: 200, maxConcurrentStreams: 1 },
  });
  server.setServing(true);
  onTestFinished(() => server.close(0));
  const session = connect(`http://${server.address}`);
  onTestFinished(() => session.destroy());
  const check = () =>
    session.request(
      {
        ':method': 'POST',
        ':path': '/grpc.health.v1.Health/Check',
        'content-type': 'application/grpc',
        te: 'trailers',
      },
      { endStream: false },
    );
  const unfinished = check();
  // The header of a message, without the message.
  unfinished.write(Buffer.from([0, 0, 0, 0, 9]));
  const [refused] = (await once(unfinished, 'response')) as [IncomingHttpHeaders];
  expect(refused).toMatchObject({
    'grpc-status': '4',
    'grpc-message': expect.stringContaining('not%20complete%20within%20200%20ms'),
  });
  const next = check();
  next.end(Buffer.alloc(5));
  next.resume();
  const [trailers] = (await once(next, 'trailers')) as [IncomingHttpHeaders];
  expect(trailers['grpc-status']).toBe('0');
});
