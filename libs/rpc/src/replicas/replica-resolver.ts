import { promises as dns, type LookupAddress } from 'node:dns';
import { isIP } from 'node:net';
import { experimental, Metadata, status } from '@grpc/grpc-js';

type Uri = experimental.GrpcUri;

const SCHEME = 'writ';
const DEFAULT_PORT = 443;
/** How often names are asked for again, so that a replica that was added is found. */
const LOOK_AGAIN_MS = 30_000;
/** Least time between two looks, whoever wants one. */
const REST_MS = 1_000;

/**
 * What grpc-js is to connect to for the address of a service: `host:port`, or several of them with
 * commas between. Each address that a host name has counts as a replica of its own (SYS-5).
 */
export function replicaTarget(addresses: string): string {
  experimental.registerResolver(SCHEME, ReplicaResolver);
  return `${SCHEME}:${addresses.replaceAll(/\s/g, '')}`;
}

/** Finds the replicas of a service behind a list of addresses. */
class ReplicaResolver implements experimental.Resolver {
  readonly #places: readonly string[];
  readonly #listener: experimental.ResolverListener;
  readonly #hasNames: boolean;
  #told = false;
  #looking = false;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  /** Tells answers that came too late from those that are waited for. */
  #life = 0;

  constructor(target: Uri, listener: experimental.ResolverListener) {
    this.#places = target.path.split(',').filter(Boolean);
    this.#listener = listener;
    this.#hasNames = this.#places.some((place) => isIP(parse(place).host) === 0);
  }

  static getDefaultAuthority({ path }: Uri): string {
    return path.split(',')[0] ?? '';
  }

  updateResolution(): void {
    if (this.#looking || (this.#told && !this.#hasNames)) return;
    this.#looking = true;
    clearTimeout(this.#timer);
    const wait = this.#lookedAt + REST_MS - performance.now();
    const life = this.#life;
    if (wait <= 0) process.nextTick(() => void this.#look(life));
    else this.#timer = setTimeout(() => void this.#look(life), wait).unref();
  }

  destroy(): void {
    this.#life += 1;
    this.#told = false;
    this.#looking = false;
    clearTimeout(this.#timer);
  }

  async #look(life: number): Promise<void> {
    const found = await Promise.allSettled(this.#places.map(endpointsOf));
    if (life !== this.#life) return;
    this.#looking = false;
    this.#lookedAt = performance.now();
    const endpoints = found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    this.#told = true;
    this.#listener(
      endpoints.length > 0
        ? experimental.statusOrFromValue(endpoints)
        : experimental.statusOrFromError({
            code: status.UNAVAILABLE,
            details: `No address was found for ${this.#places.join(', ')}.`,
            metadata: new Metadata(),
          }),
      {},
      null,
      '',
    );
    if (!this.#hasNames) return;
    this.#timer = setTimeout(() => this.updateResolution(), LOOK_AGAIN_MS).unref();
  }
}

async function endpointsOf(place: string): Promise<experimental.Endpoint[]> {
  const { host, port = DEFAULT_PORT } = parse(place);
  const addresses: Pick<LookupAddress, 'address'>[] =
    isIP(host) === 0 ? await dns.lookup(host, { all: true }) : [{ address: host }];
  return addresses.map(({ address }) => ({ addresses: [{ host: address, port }] }));
}

function parse(place: string): experimental.HostPort {
  return experimental.splitHostPort(place) ?? { host: place };
}
