import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { loadYaml } from '@writ/config';
import {
  guardedRequest,
  type Resolve,
  readRedirect,
  readTarget,
  refusedAddress,
} from '@writ/service';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

interface Vectors {
  readonly urls: readonly { readonly url: string; readonly rule: string }[];
  readonly names: readonly { readonly addresses: readonly string[]; readonly rule: string }[];
  readonly redirects: readonly { readonly location: string; readonly rule: string }[];
}

const { value: vectors } = loadYaml<Vectors>(join(import.meta.dirname, 'egress-vectors.yaml'), {});
const NOTHING = { hosts: [], ports: [] };

let server: Server;
let port: number;
let visits: string[];
let location: string | undefined;

beforeEach(async () => {
  visits = [];
  location = undefined;
  server = createServer((request, response) => {
    visits.push(`${request.socket.localAddress} ${request.headers.host} ${request.url}`);
    if (location === undefined) response.end('here');
    else response.writeHead(302, { location }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  ({ port } = server.address() as AddressInfo);
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function get(
  url: string,
  hosts: readonly string[] = [],
  resolve: Resolve = never,
  { signal } = new AbortController(),
) {
  const allowance = { hosts, ports: [] };
  return guardedRequest(url, { method: 'GET', headers: {}, allowance, resolve, signal });
}

const never: Resolve = async () => {
  throw new Error('A name was resolved.');
};

describe('the egress guard (TG-9)', () => {
  it('is tested with at least 150 vectors', () => {
    const { urls, names, redirects } = vectors;
    expect(urls.length + names.length + redirects.length).toBeGreaterThanOrEqual(150);
  });

  it.each(vectors.urls)('rejects $url: $rule', async ({ url, rule }) => {
    await expect(get(url)).rejects.toMatchObject({ name: 'EgressRefusal', rule });
  });

  it.each(vectors.names)('rejects a name that resolves to $addresses: $rule', async (vector) => {
    const leads = get('http://name.example.org/', [], async () => vector.addresses);
    await expect(leads).rejects.toMatchObject({ name: 'EgressRefusal', rule: vector.rule });
  });

  it.each(vectors.redirects)('rejects a redirect to $location: $rule', async (vector) => {
    location = vector.location;
    const followed = get(`http://127.0.0.1:${port}/`, [`127.0.0.1:${port}`], async () => [
      '127.0.0.1',
    ]);
    await expect(followed).rejects.toMatchObject({ name: 'EgressRefusal', rule: vector.rule });
  });

  it.each(['8.8.8.8', '1.1.1.1', '93.184.215.14', '2606:4700::1111', '2a00:1450:4001::200e'])(
    'allows %s',
    (address) => {
      expect(refusedAddress(address)).toBeUndefined();
    },
  );

  it.each(['http://8.8.8.8/', 'https://[2606:4700:0:0::1111]/x', 'https://www.example.org./'])(
    'allows %s',
    (url) => {
      expect(readTarget(url, NOTHING).allowed).toBe(false);
    },
  );

  it('allows a configured port', () => {
    expect(readTarget('https://example.org:8443/', { hosts: [], ports: [8443] }).port).toBe(8443);
  });

  it('connects to an allowed host on the allowed port only', async () => {
    const allowed = [`127.0.0.1:${port}`];
    const { status, response } = await get(`http://127.0.0.1:${port}/page`, allowed);
    expect({ status, body: await text(response) }).toEqual({ status: 200, body: 'here' });
    await expect(get(`http://127.0.0.1:${port + 1}/`, allowed)).rejects.toThrow(/loopback/);
    await expect(get(`http://127.0.0.2:${port}/`, allowed)).rejects.toThrow(/loopback/);
  });

  it('connects to the checked address even if the name resolves to another address later', async () => {
    const host = `rebind.example.org:${port}`;
    const answers = ['127.0.0.2', '127.0.0.3'];
    const { response } = await get(`http://${host}/`, [host], async () => answers.splice(0, 1));
    await text(response);
    expect(visits).toEqual([`127.0.0.2 ${host} /`]);
    expect(answers).toEqual(['127.0.0.3']);
  });

  it('resolves and checks the name of each redirect', async () => {
    location = 'http://turns.example.org/';
    const asked: string[] = [];
    const followed = get(`http://127.0.0.1:${port}/`, [`127.0.0.1:${port}`], async (host) => {
      asked.push(host);
      return ['10.0.0.1'];
    });
    await expect(followed).rejects.toMatchObject({ rule: 'private' });
    expect(asked).toEqual(['turns.example.org']);
  });

  it.each([
    ['public', []],
    ['allowed', ['name.example.org:80']],
  ])('rejects as soon as it is aborted during the lookup of a name: %s', async (_, hosts) => {
    const controller = new AbortController();
    const asked = Promise.withResolvers<void>();
    const endless: Resolve = () => {
      asked.resolve();
      return new Promise(() => undefined);
    };
    const reason = new Error('timed out');
    const request = get('http://name.example.org/', hosts, endless, controller);
    await asked.promise;
    controller.abort(reason);
    await expect(request).rejects.toBe(reason);
  });

  it('rejects a redirect from https to http', () => {
    const from = readTarget('https://example.org/', NOTHING);
    expect(() => readRedirect(from, 'http://example.org/', NOTHING)).toThrow(/https to http/);
    expect(readRedirect(from, '/page', NOTHING).url.href).toBe('https://example.org/page');
  });
});
