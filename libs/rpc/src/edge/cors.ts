import { cors as connectCors } from '@connectrpc/connect';
import { METADATA } from '../caller.ts';
import type { WebRequest, WebResponse } from './web.ts';

const ALLOWED_HEADERS = [
  ...connectCors.allowedHeaders,
  METADATA.authorization,
  METADATA.traceparent,
  'last-event-id',
].join(', ');
const PREFLIGHT_MAX_AGE_S = 7200;

/** Adds CORS headers for the allowed origins. */
export class Cors {
  readonly #allowed: ReadonlySet<string>;

  /** @param origins such as `https://console.example`; no wildcards */
  constructor(origins: readonly string[]) {
    this.#allowed = new Set(origins);
  }

  /**
   * Adds the CORS headers for `request`. Returns true if the request was a preflight, which this method has answered.
   */
  handle(request: WebRequest, response: WebResponse): boolean {
    const { origin } = request.headers;
    if (origin === undefined) return false;
    response.setHeader('vary', 'Origin');
    if (this.#allowed.has(origin)) {
      response.setHeader('access-control-allow-origin', origin);
      response.setHeader('access-control-expose-headers', connectCors.exposedHeaders.join(', '));
    }
    if (!isPreflight(request)) return false;
    if (this.#allowed.has(origin)) {
      response.setHeader('access-control-allow-methods', connectCors.allowedMethods.join(', '));
      response.setHeader('access-control-allow-headers', ALLOWED_HEADERS);
      response.setHeader('access-control-max-age', String(PREFLIGHT_MAX_AGE_S));
    }
    response.writeHead(this.#allowed.has(origin) ? 204 : 403);
    response.end();
    return true;
  }
}

function isPreflight({ method, headers }: WebRequest): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}
