import { lookup, Resolver } from 'node:dns/promises';

/** Resolves a name to all its addresses. */
export type Resolve = (host: string, signal: AbortSignal) => Promise<readonly string[]>;

/** Time after which a query is repeated, and number of queries to each name server. */
const QUERIES = { timeout: 2_000, tries: 2 };

/**
 * Resolves a name with the operating system. Such a lookup occupies one of the few threads of the process until it
 * ends, so it is used only for names that the configuration allows.
 */
export async function resolveAllowed(host: string): Promise<readonly string[]> {
  const found = await lookup(host, { all: true });
  return found.map(({ address }) => address);
}

/**
 * Resolves a name of the public internet with queries to the name servers of the system. These do not use threads, and
 * are cancelled when the signal aborts, so a name server that does not answer cannot delay the lookups of other calls.
 * @returns an empty list if the name has no address, or every query fails or is cancelled
 */
export async function resolvePublic(
  host: string,
  signal: AbortSignal,
  resolver = new Resolver(QUERIES),
): Promise<readonly string[]> {
  const cancel = () => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    const queries = [resolver.resolve4(host), resolver.resolve6(host)];
    const found = await Promise.allSettled(queries);
    return found.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}
