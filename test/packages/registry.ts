import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

const UPSTREAM = 'https://registry.npmjs.org';

/** A local npm registry. */
export interface Registry {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves the packed packages of a folder under their names, and everything else from the public registry. */
export async function startRegistry(folder: string): Promise<Registry> {
  const manifests = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(
      ({ name }) =>
        JSON.parse(readFileSync(join(folder, name, 'package.json'), 'utf8')) as Manifest,
    );
  const own = new Map(manifests.map((manifest) => [manifest.name, manifest]));
  const server = createServer((request, response) => {
    answer(request, response, { own, folder, url }).catch((error: unknown) => {
      response.writeHead(502).end(String(error));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Manifest {
  readonly name: string;
  readonly version: string;
}

interface Served {
  readonly own: ReadonlyMap<string, Manifest>;
  readonly folder: string;
  readonly url: string;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { own, folder, url }: Served,
): Promise<void> {
  const path = decodeURIComponent((request.url ?? '/').slice(1));
  const manifest = own.get(path);
  if (manifest !== undefined) {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(packument(manifest, folder, url)));
  } else if (path.startsWith('packed/')) {
    response.end(readFileSync(join(folder, path.slice('packed/'.length))));
  } else {
    const { accept = '*/*' } = request.headers;
    const found = await fetch(`${UPSTREAM}${request.url}`, { headers: { accept } });
    // Before the headers, because an error while it is read becomes the response.
    const body = Buffer.from(await found.arrayBuffer());
    response.writeHead(found.status, {
      'content-type': found.headers.get('content-type') ?? 'application/octet-stream',
    });
    response.end(body);
  }
}

function packument(manifest: Manifest, folder: string, url: string): object {
  const { name, version } = manifest;
  const file = `${name.replace('@', '').replace('/', '-')}-${version}.tgz`;
  const hash = createHash('sha512').update(readFileSync(join(folder, file)));
  const dist = { tarball: `${url}/packed/${file}`, integrity: `sha512-${hash.digest('base64')}` };
  return {
    name,
    'dist-tags': { latest: version },
    versions: { [version]: { ...manifest, dist } },
  };
}
