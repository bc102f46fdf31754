import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { StartRunRequestSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { expect, it, onTestFinished, vi } from 'vitest';
import { reserved } from '../src/index.ts';
import { ALLOWED, KEY, START, start } from './fixture.ts';

const MANY = 400;

/** Sends many StartRun requests at once over one connection. If `complete` is false, it sends only the headers. */
async function sendMany(
  address: string,
  complete: boolean,
  type: 'json' | 'grpc' = 'json',
): Promise<ClientHttp2Session> {
  const session = connect(`http://${address}`);
  session.on('error', () => undefined);
  onTestFinished(() => session.destroy());
  await once(session, 'remoteSettings');
  for (let count = 0; count < MANY; count += 1) {
    const stream = session.request(
      {
        ':method': 'POST',
        ':path': '/writ.run.v1.RunService/StartRun',
        'content-type': `application/${type}`,
        ...(type === 'grpc' && { te: 'trailers' }),
        authorization: `Bearer ${KEY}`,
      },
      { endStream: false },
    );
    stream.on('error', () => undefined);
    stream.resume();
    if (complete) stream.end(contentOf({ ...START, requestId: `${count}` }, type));
  }
  return session;
}

function contentOf(request: typeof START, type: 'json' | 'grpc'): Buffer {
  if (type === 'json') return Buffer.from(JSON.stringify(request));
  const message = toBinary(StartRunRequestSchema, create(StartRunRequestSchema, request));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([prefix, message]);
}

const WIRES = [
  ['edge', 'json'],
  ['edge', 'grpc'],
  ['grpc-js', 'grpc'],
] as const;

it.each(WIRES)(
  '%s (%s) starts a few requests per event loop turn, so that a halt does not wait for hundreds of them (BD-2)',
  async (transport, type) => {
    const begun: string[] = [];
    const first = Promise.withResolvers<void>();
    const { client, address } = await start(transport, {
      startRun: async ({ requestId }) => {
        begun.push(requestId);
        first.resolve();
        return {};
      },
      cancelRun: reserved(async () => {
        begun.push('halt');
        return {};
      }),
    });
    const operator = client();
    const halt = () => operator.cancelRun({ requestId: 'h', runId: 'r' }, ALLOWED);
    // Opens the connection of the operator before the requests are sent.
    await halt();
    begun.splice(0);
    await sendMany(address, true, type);
    await first.promise;
    await halt();
    expect(begun.indexOf('halt')).toBeLessThan(MANY / 2);
    await expect.poll(() => begun.length, { timeout: 30_000 }).toBe(MANY + 1);
    const others = begun.filter((id) => id !== 'halt');
    expect(others).toEqual(Array.from({ length: MANY }, (_, count) => `${count}`));
  },
);

it('requests that have not started when their connection closes do not count as calls (BD-2)', async () => {
  const limits = { maxConcurrentCalls: MANY / 10 };
  const { client, address } = await start('edge', { startRun: async () => ({}) }, { limits });
  const caller = client();
  await caller.startRun(START, ALLOWED);
  const session = await sendMany(address, false);
  // The response to the ping shows that the server has received the requests.
  await new Promise<void>((resolve) => session.ping(() => resolve()));
  session.destroy();
  await vi.waitFor(() => caller.startRun(START, ALLOWED));
});

it.each(WIRES)(
  '%s (%s) cancels a few requests per event loop turn when a connection closes, so that a halt does not wait (BD-2)',
  async (transport, type) => {
    const ended: string[] = [];
    const first = Promise.withResolvers<void>();
    const { client, address } = await start(transport, {
      startRun: async ({ requestId }, { signal }) => {
        begun += 1;
        await once(signal, 'abort');
        ended.push(requestId);
        first.resolve();
        throw signal.reason;
      },
      cancelRun: reserved(async () => {
        ended.push('halt');
        return {};
      }),
    });
    let begun = 0;
    const operator = client();
    const halt = () => operator.cancelRun({ requestId: 'h', runId: 'r' }, ALLOWED);
    // Opens the connection of the operator before the requests are sent.
    await halt();
    ended.splice(0);
    const session = await sendMany(address, true, type);
    await expect.poll(() => begun).toBe(MANY);
    session.destroy();
    await first.promise;
    await halt();
    expect(ended.indexOf('halt')).toBeLessThan(MANY / 2);
    await expect.poll(() => ended.length).toBe(MANY + 1);
  },
);
