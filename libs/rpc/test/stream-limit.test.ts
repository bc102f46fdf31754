import { once } from 'node:events';
import { type ClientHttp2Session, connect, constants } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { StartRunRequestSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { expect, it, onTestFinished } from 'vitest';
import { KEY, START, start } from './fixture.ts';

const LIMITS = { maxAnonymousStreams: 8, maxConcurrentStreams: 200 };

async function opened(address: string): Promise<ClientHttp2Session> {
  const session = connect(`http://${address}`);
  session.on('error', () => undefined);
  onTestFinished(() => session.destroy());
  await once(session, 'remoteSettings');
  return session;
}

/** Sends one call and returns its gRPC status. */
async function statusOf(session: ClientHttp2Session, key: string): Promise<unknown> {
  const stream = session.request({
    ':method': 'POST',
    ':path': '/writ.run.v1.RunService/StartRun',
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${key}`,
  });
  let status: unknown;
  stream.on('trailers', (trailers) => {
    status = trailers['grpc-status'];
  });
  stream.on('response', (headers) => {
    status ??= headers['grpc-status'];
  });
  stream.resume();
  const message = toBinary(StartRunRequestSchema, create(StartRunRequestSchema, START));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.byteLength, 1);
  stream.end(Buffer.concat([prefix, message]));
  await once(stream, 'close');
  return status;
}

it.each(['edge', 'grpc-js'] as const)(
  'limits the streams of a connection until a call on it is authenticated (%s; BD-2)',
  async (transport) => {
    const { address } = await start(transport, { startRun: async () => ({}) }, { limits: LIMITS });
    const session = await opened(address);
    expect(session.remoteSettings.maxConcurrentStreams).toBe(8);
    expect(await statusOf(session, 'wrong')).toBe('16');
    await new Promise<void>((resolve) => session.ping(() => resolve()));
    expect(session.remoteSettings.maxConcurrentStreams).toBe(8);
    const raised = once(session, 'remoteSettings');
    expect(await statusOf(session, KEY)).toBe('0');
    await raised;
    expect(session.remoteSettings.maxConcurrentStreams).toBe(200);
  },
);

it.each(['edge', 'grpc-js'] as const)(
  'keeps the stream limit of a connection after a call that needs no credentials (%s; BD-2)',
  async (transport) => {
    const gate = async () => ({ isAnonymous: true }) as const;
    const { address } = await start(
      transport,
      { startRun: async () => ({}) },
      { limits: LIMITS, gate },
    );
    const session = await opened(address);
    expect(await statusOf(session, KEY)).toBe('0');
    await new Promise<void>((resolve) => session.ping(() => resolve()));
    expect(session.remoteSettings.maxConcurrentStreams).toBe(8);
  },
);

it.each(['edge', 'grpc-js'] as const)(
  'refuses streams over the limit if the client ignores the limit, and starts no calls for them (%s; BD-2)',
  async (transport) => {
    const { address } = await start(transport, {}, { limits: LIMITS });
    // The client opens streams before it has received the settings of the server.
    const session = connect(`http://${address}`, { peerMaxConcurrentStreams: 1_000 });
    session.on('error', () => undefined);
    onTestFinished(() => session.destroy());
    const refused: number[] = [];
    let answered = 0;
    for (let count = 0; count < 60; count += 1) {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/grpc.health.v1.Health/Watch',
        'content-type': 'application/grpc',
        te: 'trailers',
      });
      stream.on('error', () => undefined);
      stream.on('response', () => {
        answered += 1;
      });
      stream.on('close', () => refused.push(stream.rstCode ?? 0));
      stream.resume();
      stream.end(Buffer.alloc(5));
    }
    await expect.poll(() => refused.length + answered).toBe(60);
    expect(answered).toBe(8);
    expect(new Set(refused)).toEqual(new Set([constants.NGHTTP2_REFUSED_STREAM]));
  },
);
