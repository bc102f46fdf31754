import { readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { WebHook, WebRequest, WebResponse } from './web.ts';

/** Options of {@link staticFiles}. */
export interface StaticFilesOptions {
  /** The folder with index.html; undefined when there is none. */
  readonly folder: string | undefined;
  /** One sentence that `/` returns when there is no folder, or no index.html in it. */
  readonly missing: string;
  /** JSON documents by path, such as `/console.json`, readable without credentials. */
  readonly documents?: Readonly<Record<string, object>>;
  /** Further origins to which the pages may connect, such as an OIDC issuer's. */
  readonly connectTo?: readonly string[];
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain; charset=utf-8',
};

/** Maximum number of files in the folder: a misconfigured folder must not exhaust the memory (SYS-4). */
const MAX_FILES = 2_000;
const MAX_BYTES = 64 * 1024 * 1024;

/** Paths of files whose names contain the hash of their content, so that clients can cache the files forever. */
const HASHED = /^\/assets\//;
/** Paths of pages. RPC paths never match, because they contain a dot. */
const PAGE = /^\/[a-z0-9_/-]*$/i;

interface StaticFile {
  readonly type: string;
  readonly body: Buffer;
  readonly gzip: Buffer | undefined;
}

/**
 * Serves the files of a folder, and index.html for the paths of pages. It reads the folder once, without empty files
 * and files with an unknown extension. Only the files read at that time can be requested, so path traversal is
 * impossible. Every response has a strict content security policy.
 */
export function staticFiles(options: StaticFilesOptions): WebHook {
  const { folder, missing, documents = {}, connectTo = [] } = options;
  const files = folder === undefined ? undefined : readFiles(folder);
  const index = files?.get('/index.html');
  const headers = securityHeaders(connectTo);
  return (request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return false;
    const [path = ''] = (request.url ?? '').split('?', 1);
    const document = Object.hasOwn(documents, path) ? documents[path] : undefined;
    const file = files?.get(path);
    if (document !== undefined) {
      const body = Buffer.from(JSON.stringify(document));
      send(request, response, { type: TYPES['.json'] ?? '', body, gzip: undefined }, headers);
    } else if (file !== undefined) {
      send(request, response, file, { ...headers, 'cache-control': cacheOf(path) });
    } else if (!PAGE.test(path)) return false;
    else if (index !== undefined) send(request, response, index, headers);
    else if (path !== '/') return false;
    else {
      const body = Buffer.from(`${missing}\n`);
      send(request, response, { type: TYPES['.txt'] ?? '', body, gzip: undefined }, headers);
    }
    return true;
  };
}

function cacheOf(path: string): string {
  return HASHED.test(path) ? 'public, max-age=31536000, immutable' : 'no-cache';
}

function send(
  request: WebRequest,
  response: WebResponse,
  { type, body, gzip }: StaticFile,
  headers: Readonly<Record<string, string>>,
): void {
  const isGzip = gzip !== undefined && /\bgzip\b/.test(String(request.headers['accept-encoding']));
  const content = isGzip ? gzip : body;
  // Appended, because the CORS handler has already set `Vary: Origin`, which a header passed to writeHead would
  // replace.
  if (gzip !== undefined) response.appendHeader('vary', 'Accept-Encoding');
  response.writeHead(200, {
    ...headers,
    'content-type': type,
    'content-length': String(content.length),
    ...(isGzip && { 'content-encoding': 'gzip' }),
  });
  response.end(request.method === 'HEAD' ? undefined : content);
}

function securityHeaders(connectTo: readonly string[]): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    // The UI component library inserts style elements; styles cannot run code.
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    `connect-src ${["'self'", ...connectTo].join(' ')}`,
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ];
  return {
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cache-control': 'no-cache',
  };
}

function readFiles(folder: string): ReadonlyMap<string, StaticFile> {
  const files = new Map<string, StaticFile>();
  let bytes = 0;
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name);
    const type = TYPES[extname(name)];
    const size = type === undefined ? 0 : statSync(path).size;
    if (type === undefined || size === 0) continue;
    bytes += size;
    if (files.size >= MAX_FILES || bytes > MAX_BYTES)
      throw new RangeError(`${folder} exceeds ${MAX_FILES} files or ${MAX_BYTES} bytes.`);
    files.set(`/${name.replaceAll('\\', '/')}`, {
      type,
      body: readFileSync(path),
      gzip: readIfPresent(`${path}.gz`),
    });
  }
  return files;
}

function readIfPresent(path: string): Buffer | undefined {
  return statSync(path, { throwIfNoEntry: false }) && readFileSync(path);
}
