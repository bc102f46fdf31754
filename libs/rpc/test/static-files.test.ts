import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, it, onTestFinished } from 'vitest';
import { staticFiles } from '../src/edge/index.ts';
import { start } from './fixture.ts';

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

const MISSING = 'The console is not built: run `npm run console`.';

/** Creates a folder with the files of a page, next to a file that must not be served. */
function builtFolder(): string {
  const base = mkdtempSync(join(tmpdir(), 'writ-static-'));
  onTestFinished(() => rmSync(base, { recursive: true }));
  mkdirSync(join(base, 'dist/assets'), { recursive: true });
  writeFileSync(join(base, 'secret.json'), '{"key": "writ_1"}');
  writeFileSync(join(base, 'dist/index.html'), '<!doctype html><title>Writ</title>');
  const script = 'export const a = 1;';
  writeFileSync(join(base, 'dist/assets/index-a1.js'), script);
  writeFileSync(join(base, 'dist/assets/index-a1.js.gz'), gzipSync(script));
  return join(base, 'dist');
}

/** Sends a path as it is; fetch would normalize it. */
function get(address: string, path: string, headers = {}, method = 'GET'): Promise<Answer> {
  const [host, port] = address.split(':');
  return new Promise((resolve, reject) => {
    const sent = request({ host, port, path, method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks),
        }),
      );
    });
    sent.on('error', reject);
    sent.end();
  });
}

it('serves files with strict headers, and index.html for the paths of pages (SYS-2, PE-2)', async () => {
  const web = staticFiles({
    folder: builtFolder(),
    missing: MISSING,
    documents: { '/console.json': { trace_url: 'x' } },
    connectTo: ['https://issuer.example'],
  });
  const { address } = await start('edge', {}, { web });
  const page = await get(address, '/');
  expect(page).toMatchObject({
    status: 200,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-cache',
      'referrer-policy': 'no-referrer',
    },
  });
  const policy = String(page.headers['content-security-policy']);
  expect(policy).toContain("default-src 'none'; script-src 'self';");
  expect(policy).toContain("connect-src 'self' https://issuer.example;");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain('unsafe-eval');
  expect((await get(address, '/runs/run_1?state=running')).body).toEqual(page.body);
  expect((await get(address, '/console.json')).body.toString()).toBe('{"trace_url":"x"}');
  const script = await get(address, '/assets/index-a1.js', { 'accept-encoding': 'gzip, br' });
  expect(script.headers).toMatchObject({
    'content-encoding': 'gzip',
    'cache-control': 'public, max-age=31536000, immutable',
    'content-type': 'text/javascript; charset=utf-8',
  });
  expect(gunzipSync(script.body).toString()).toBe('export const a = 1;');
  expect((await get(address, '/', {}, 'HEAD')).body).toHaveLength(0);
});

it('varies a compressed file by origin and encoding (SYS-2)', async () => {
  const web = staticFiles({ folder: builtFolder(), missing: MISSING });
  const { address } = await start('edge', {}, { web, allowedOrigins: ['https://console.example'] });
  const path = '/assets/index-a1.js';
  const headers = { origin: 'https://console.example' };
  expect((await get(address, path, headers)).headers.vary).toBe('Origin, Accept-Encoding');
  expect((await get(address, path)).headers.vary).toBe('Accept-Encoding');
});

it('serves no file outside of the folder, and handles neither paths of RPCs nor POST requests (SYS-6)', async () => {
  const { address } = await start(
    'edge',
    {},
    { web: staticFiles({ folder: builtFolder(), missing: MISSING }) },
  );
  for (const path of [
    '/../secret.json',
    '/assets/../../secret.json',
    '/%2e%2e/secret.json',
    '/assets/..%2f..%2fsecret.json',
    '/secret.json',
    '/assets',
    '/__proto__',
    '/constructor',
    '/writ.run.v1.RunService/Nothing',
  ]) {
    const { body } = await get(address, path);
    expect(body.toString()).not.toContain('writ_1');
  }
  expect((await get(address, '/secret.json')).status).toBe(404);
  expect((await get(address, '/writ.run.v1.RunService/Nothing')).status).toBe(404);
  expect((await get(address, '/', {}, 'POST')).status).toBe(404);
});

it('returns instructions to build the console at / when it is missing (SYS-3)', async () => {
  const { address } = await start(
    'edge',
    {},
    { web: staticFiles({ folder: undefined, missing: MISSING }) },
  );
  const { status, body } = await get(address, '/');
  expect({ status, body: body.toString() }).toEqual({ status: 200, body: `${MISSING}\n` });
  expect((await get(address, '/runs')).status).toBe(404);
});

it('serves files over HTTP/2 (SYS-2)', async () => {
  const { address } = await start(
    'edge',
    {},
    { web: staticFiles({ folder: builtFolder(), missing: MISSING }) },
  );
  const session = connect(`http://${address}`);
  onTestFinished(() => session.close());
  const stream = session.request({ ':path': '/' });
  let text = '';
  stream.setEncoding('utf8');
  for await (const chunk of stream) text += chunk;
  expect(text).toContain('<title>Writ</title>');
});
