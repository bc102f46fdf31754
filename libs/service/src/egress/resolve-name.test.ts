import { createSocket, type Socket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { resolvePublic } from './resolve-name.ts';

const A = 1;
const AAAA = 28;

let server: Socket;
let resolver: Resolver;

beforeEach(async () => {
  server = createSocket('udp4');
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  resolver = new Resolver({ timeout: 60_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${server.address().port}`]);
});

afterEach(() => {
  server.close();
});

describe('the lookup of a public name (TG-9)', () => {
  it('queries the name servers for all addresses of both families', async () => {
    server.on('message', (query, { port, address }) => {
      server.send(answer(query), port, address);
    });
    const { signal } = new AbortController();
    const found = await resolvePublic('name.example.org', signal, resolver);
    expect(found).toEqual(['192.0.2.1', '192.0.2.2', '2001:db8::1']);
  });

  it('is cancelled when its signal aborts, without an answer of the name server', async () => {
    const controller = new AbortController();
    const found = resolvePublic('name.example.org', controller.signal, resolver);
    await once(server, 'message');
    controller.abort();
    expect(await found).toEqual([]);
  });
});

/** A DNS response with the addresses of a query. */
function answer(query: Buffer): Buffer {
  // The question starts after a header of 12 bytes and ends with the type and the class, 2 bytes each.
  const end = query.indexOf(0, 12) + 5;
  const type = query.readUInt16BE(end - 4);
  const addresses =
    type === A
      ? ['c0000201', 'c0000202']
      : ['20010db8000000000000000000000001'].filter(() => type === AAAA);
  const header = Buffer.from('000081800001000000000000', 'hex');
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(addresses.length, 6);
  const records = addresses.map((hex) => {
    const data = Buffer.from(hex, 'hex');
    const record = Buffer.from('c00c000000010000003c0000', 'hex');
    record.writeUInt16BE(type, 2);
    record.writeUInt16BE(data.length, 10);
    return Buffer.concat([record, data]);
  });
  return Buffer.concat([header, query.subarray(12, end), ...records]);
}
