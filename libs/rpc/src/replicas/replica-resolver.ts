import { promises as dns, type LookupAddress } from 'node:dns';
import { isIP } from 'node:net';
import { experimental, Metadata, status } from '@grpc/grpc-js';

type Uri = experimental.GrpcUri;

const SCHEME = 'writ';
const DEFAULT_PORT = 443;
/** Interval of periodic name lookups, which find added replicas. */
const LOOKUP_INTERVAL_MS = 30_000;
/** Minimum interval between two lookups. */
const MIN_LOOKUP_INTERVAL_MS = 1_000;

/**
 * Returns the grpc-js target for the address of a service: `host:port` or a comma-separated list. Each IP address of a
 * host name is a separate replica (SYS-5).
 */
export function replicaTarget(addresses: string): string {
  experimental.registerResolver(SCHEME, ReplicaResolver);
  return `${SCHEME}:${addresses.replaceAll(/\s/g, '')}`;
}

/** Resolves a list of addresses to the replicas of a service. */
class ReplicaResolver implements experimental.Resolver {
  readonly #addresses: readonly string[];
  readonly #listener: experimental.ResolverListener;
  readonly #hasNames: boolean;
  /** The endpoints that the last successful lookup of each address returned. */
  readonly #endpoints = new Map<string, readonly experimental.Endpoint[]>();
  #isResolved = false;
  #isLookingUp = false;
  #lookedUpAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  /** Incremented by `destroy`; results of an earlier generation are discarded. */
  #generation = 0;

  constructor(target: Uri, listener: experimental.ResolverListener) {
    this.#addresses = target.path.split(',').filter(Boolean);
    this.#listener = listener;
    this.#hasNames = this.#addresses.some((address) => isIP(parse(address).host) === 0);
  }

  static getDefaultAuthority({ path }: Uri): string {
    return path.split(',')[0] ?? '';
  }

  updateResolution(): void {
    if (this.#isLookingUp || (this.#isResolved && !this.#hasNames)) return;
    this.#isLookingUp = true;
    clearTimeout(this.#timer);
    const wait = this.#lookedUpAt + MIN_LOOKUP_INTERVAL_MS - performance.now();
    const generation = this.#generation;
    if (wait <= 0) process.nextTick(() => void this.#lookUp(generation));
    else this.#timer = setTimeout(() => void this.#lookUp(generation), wait).unref();
  }

  destroy(): void {
    this.#generation += 1;
    this.#isResolved = false;
    this.#isLookingUp = false;
    clearTimeout(this.#timer);
  }

  async #lookUp(generation: number): Promise<void> {
    const results = await Promise.allSettled(
      this.#addresses.map(async (address) => [address, await endpointsOf(address)] as const),
    );
    if (generation !== this.#generation) return;
    this.#isLookingUp = false;
    this.#lookedUpAt = performance.now();
    const found = results.filter((result) => result.status === 'fulfilled');
    for (const { value } of found) this.#endpoints.set(...value);
    this.#isResolved = true;
    // A name whose lookup failed keeps its endpoints, because the balancer ejects endpoints that do not respond.
    this.#listener(
      found.length > 0
        ? experimental.statusOrFromValue([...this.#endpoints.values()].flat())
        : experimental.statusOrFromError({
            code: status.UNAVAILABLE,
            details: `Name lookup of ${this.#addresses.join(', ')} returned no address.`,
            metadata: new Metadata(),
          }),
      {},
      null,
      '',
    );
    if (!this.#hasNames) return;
    this.#timer = setTimeout(() => this.updateResolution(), LOOKUP_INTERVAL_MS).unref();
  }
}

async function endpointsOf(target: string): Promise<experimental.Endpoint[]> {
  const { host, port = DEFAULT_PORT } = parse(target);
  const addresses: Pick<LookupAddress, 'address'>[] =
    isIP(host) === 0 ? await dns.lookup(host, { all: true }) : [{ address: host }];
  return addresses.map(({ address }) => ({ addresses: [{ host: address, port }] }));
}

function parse(target: string): experimental.HostPort {
  return experimental.splitHostPort(target) ?? { host: target };
}
