import { lookup } from 'node:dns/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import {
  type EgressAllowance,
  EgressRefusal,
  type EgressTarget,
  judgeAddresses,
  readRedirect,
  readTarget,
} from '../../domain/egress/egress-rules.ts';

/** Every address of a name. */
export type Resolve = (host: string) => Promise<readonly string[]>;

/** What {@link guardedRequest} needs. */
export interface GuardedRequest {
  readonly method: 'GET' | 'HEAD';
  readonly headers: Readonly<Record<string, string>>;
  readonly allowance: EgressAllowance;
  /** Default asks the machine's resolver. */
  readonly resolve?: Resolve;
  /** Ends the request, also while the body is read. */
  readonly signal: AbortSignal;
}

/** An answer whose body is still to be read. */
export interface GuardedResponse {
  /** Where it came from in the end. */
  readonly url: string;
  readonly status: number;
  readonly response: IncomingMessage;
}

const MAX_REDIRECTS = 5;
const MAX_HEADER_BYTES = 16_384;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Makes a request through the egress guard (TG-9): each hop's URL is judged, its name resolved once,
 * every address judged, and the connection goes to one of exactly those addresses, so a name that
 * changes its mind in between gains nothing.
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
    if (!REDIRECTS.has(status) || location === undefined) {
      return { url: target.url.href, status, response };
    }
    response.destroy();
    target = readRedirect(target, location, allowance);
  }
  throw new EgressRefusal('redirects', `The URL redirects more than ${MAX_REDIRECTS} times.`);
}

async function send(
  target: EgressTarget,
  { method, headers, resolve = resolveAll, signal }: GuardedRequest,
): Promise<IncomingMessage> {
  const { url, host } = target;
  const addresses = isIP(host) === 0 ? await resolved(host, resolve) : [host];
  signal.throwIfAborted();
  judgeAddresses(target, addresses);
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const { promise, resolve: answer, reject } = Promise.withResolvers<IncomingMessage>();
  send(
    url,
    {
      method,
      headers: { ...headers, 'accept-encoding': 'identity' },
      lookup: onlyThese(addresses),
      // No pool: each connection is one that was checked for this very hop.
      agent: false,
      signal,
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    answer,
  )
    .once('error', reject)
    .end();
  return await promise;
}

async function resolved(host: string, resolve: Resolve): Promise<readonly string[]> {
  try {
    return await resolve(host);
  } catch {
    throw new EgressRefusal('unresolved', `${host} cannot be resolved.`);
  }
}

async function resolveAll(host: string): Promise<readonly string[]> {
  const found = await lookup(host, { all: true });
  return found.map(({ address }) => address);
}

/** Answers with what was checked, whatever is asked. */
function onlyThese(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  return (host, { all }, done) => {
    const [first] = found;
    if (first === undefined) done(new Error(`${host} has no address.`), []);
    else if (all === true) done(null, found);
    else done(null, first.address, first.family);
  };
}
