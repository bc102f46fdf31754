import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { type Resolve, resolveAllowed, resolvePublic } from './resolve-name.ts';
import {
  checkAddresses,
  type EgressAllowance,
  EgressRefusal,
  type EgressTarget,
  readRedirect,
  readTarget,
} from './target-rules.ts';

/** Options of {@link guardedRequest}. */
export interface GuardedRequest {
  readonly method: 'GET' | 'HEAD' | 'POST';
  /** The body of a POST request. Redirects of POST requests are not followed. */
  readonly body?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly allowance: EgressAllowance;
  /** Default: {@link resolveAllowed} for allowed hosts, {@link resolvePublic} for all other names. */
  readonly resolve?: Resolve;
  /** Aborts the request, including the name lookup and the reading of the response body. */
  readonly signal: AbortSignal;
}

/** A response whose body has not been read. */
export interface GuardedResponse {
  /** URL after redirects. */
  readonly url: string;
  readonly status: number;
  readonly response: IncomingMessage;
}

const MAX_REDIRECTS = 5;
const MAX_HEADER_BYTES = 16_384;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Makes a request through the egress guard (TG-9). For each hop, the guard checks the URL, resolves the name once,
 * checks every address, and connects only to one of these addresses, which prevents DNS rebinding.
 * @throws EgressRefusal; what node:http throws; the reason of `signal`
 */
export async function guardedRequest(
  text: string,
  options: GuardedRequest,
): Promise<GuardedResponse> {
  const { allowance } = options;
  let target = readTarget(text, allowance);
  for (let hop = 0; hop <= MAX_REDIRECTS; hop += 1) {
    const response = await send(target, options);
    const { statusCode: status = 0, headers } = response;
    const { location } = headers;
    if (!REDIRECTS.has(status) || location === undefined || options.method === 'POST') {
      return { url: target.url.href, status, response };
    }
    response.destroy();
    target = readRedirect(target, location, allowance);
  }
  throw new EgressRefusal('redirects', `The URL redirects more than ${MAX_REDIRECTS} times.`);
}

async function send(
  target: EgressTarget,
  { method, headers, body, resolve, signal }: GuardedRequest,
): Promise<IncomingMessage> {
  const { url, host, allowed } = target;
  const find = resolve ?? (allowed ? resolveAllowed : resolvePublic);
  const addresses = isIP(host) === 0 ? await resolved(host, find, signal) : [host];
  signal.throwIfAborted();
  checkAddresses(target, addresses);
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const { promise, resolve: answer, reject } = Promise.withResolvers<IncomingMessage>();
  send(
    url,
    {
      method,
      headers: { ...headers, 'accept-encoding': 'identity' },
      lookup: fixedLookup(addresses),
      // No connection pool: every hop uses a new connection to its own checked addresses.
      agent: false,
      signal,
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    answer,
  )
    .once('error', reject)
    .end(body);
  return await promise;
}

/** Resolves a name, or rejects as soon as the signal aborts, even if the lookup does not end. */
async function resolved(
  host: string,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<readonly string[]> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([resolve(host, signal), aborted]);
  } catch {
    signal.throwIfAborted();
    throw new EgressRefusal('unresolved', `${host} cannot be resolved.`);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Returns a lookup function that resolves any name to the checked addresses. */
function fixedLookup(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  return (host, { all }, done) => {
    const [first] = found;
    if (first === undefined) done(new Error(`${host} has no address.`), []);
    else if (all === true) done(null, found);
    else done(null, first.address, first.family);
  };
}
