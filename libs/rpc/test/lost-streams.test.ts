import { once } from 'node:events';
import { constants, createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { createTelemetry } from '@writ/telemetry';
import { afterEach, describe, expect, it } from 'vitest';
import { createRpcClient } from '../src/index.ts';

/** The ways in which a peer ends a stream without a gRPC status. */
const LOSSES: Readonly<Record<string, (stream: ServerHttp2Stream) => void>> = {
  'reset with INTERNAL_ERROR': (stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
  'reset with PROTOCOL_ERROR': (stream) => stream.close(constants.NGHTTP2_PROTOCOL_ERROR),
  'ended without a status': (stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc+proto' });
    stream.end();
  },
  'ended with trailers that have no status': (stream) => {
    const headers = { ':status': 200, 'content-type': 'application/grpc+proto' };
    stream.respond(headers, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-test': '1' }));
    stream.end();
  },
  'answered with headers that have no status': (stream) => {
    stream.respond({ ':status': 200 }, { endStream: true });
  },
  'cut off with its connection': (stream) => stream.session?.destroy(),
};

describe('a stream that is lost', () => {
  let server: Http2Server;
  afterEach(() => {
    server.close();
  });

  it.each(Object.entries(LOSSES))(
    'is UNAVAILABLE, hence retryable, when %s (SYS-3, SYS-4)',
    async (_, lose) => {
      server = createServer();
      server.on('stream', (stream) => {
        stream.on('error', () => undefined);
        lose(stream);
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const client = createRpcClient(KeyService, {
        address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
        telemetry: createTelemetry({ service: 'test', logLevel: 'silent' }),
        health: 'unchecked',
      });
      await expect(client.getKeys({})).rejects.toMatchObject({
        kind: 'unavailable',
        reason: 'UNAVAILABLE',
      });
      client.close();
    },
  );
});
