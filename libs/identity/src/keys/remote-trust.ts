import { timestampDate } from '@bufbuild/protobuf/wkt';
import {
  KeyService,
  type PublicKey as PublicKeyMessage,
} from '@writ/contracts/writ/identity/v1/key_service_pb';
import {
  type Clock,
  isJsonObject,
  type JsonValue,
  type PeerClocks,
  systemClock,
} from '@writ/kernel';
import { type ClosableRpcClient, createRpcClient, type Loopback } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';
import { SERVICE_NAMES, type ServiceName } from '../services/names.ts';
import type { ServiceTls } from '../services/service-tls.ts';
import { publicKey } from './ed25519.ts';
import { IssuerKeys } from './issuer-keys.ts';
import { keyIdOf } from './key-id.ts';
import type { Signer } from './signer.ts';
import { keysUnavailable, signerKeys, type Trust, type TrustedKey } from './trust.ts';
import { poolOfWorker, type WorkerPool } from './worker-pools.ts';

/** Internal addresses, `host:port`, of the trusted services. */
export type Addresses = Readonly<Partial<Record<ServiceName, string>>>;

/** Options of {@link createTrust}. */
export interface TrustOptions {
  /** The addresses, or a function that returns them and is called before every fetch. */
  readonly addresses: Addresses | (() => Addresses | Promise<Addresses>);
  /**
   * The worker pools, each with its own keys. Workers outside of any pool are reached at the address in `addresses`.
   * Default: no pools.
   */
  readonly workerPools?: readonly WorkerPool[] | undefined;
  readonly telemetry: Telemetry;
  /** The signer of this service, used for its own keys. */
  readonly self?: Signer;
  /** Certificate of this service for fetching keys. Default: keys are fetched in cleartext. */
  readonly tls?: ServiceTls | undefined;
  /** Servers of this process, called without a connection. */
  readonly loopback?: Loopback | undefined;
  /** Default: the system clock. */
  readonly clock?: Clock;
  /** Records the clock of each service, from the time in its responses. */
  readonly peerClocks?: PeerClocks | undefined;
  /** Timeout of a fetch, ms. Default 3,000. */
  readonly timeoutMs?: number;
}

/**
 * Creates trust in the services at the given addresses. Keys are fetched with GetKeys on demand and cached:
 * refreshed in the background after five minutes, expired after an hour. Unknown key ids cause at most one
 * fetch per second and service.
 */
export function createTrust(options: TrustOptions): Trust {
  const { telemetry, self, tls, loopback, clock = systemClock, timeoutMs = 3_000 } = options;
  const { workerPools = [] } = options;
  const clients = new Map<string, ClosableRpcClient<typeof KeyService>>();
  const connect = (issuer: ServiceName, address: string) =>
    createRpcClient(KeyService, {
      address,
      telemetry,
      timeoutMs,
      tls: tls?.to(issuer),
      loopback,
      onPeerTime: (timeMs) => options.peerClocks?.observe(issuer, timeMs),
      // A starting service calls other services, which need its keys before it reports SERVING.
      health: 'responding',
    });

  const addressOf = async (issuer: ServiceName) => {
    const { addresses } = options;
    return (typeof addresses === 'function' ? await addresses() : addresses)[issuer];
  };
  const clientOf = (issuer: ServiceName, address: string | undefined) => {
    if (address === undefined) throw keysUnavailable(issuer, 'it has no address in the trust list');
    const key = `${issuer} ${address}`;
    const client = clients.get(key) ?? connect(issuer, address);
    clients.set(key, client);
    return client;
  };

  const fetchKeys = async (
    issuer: ServiceName,
    pool?: WorkerPool,
  ): Promise<ReadonlyMap<string, TrustedKey>> => {
    const client = clientOf(issuer, pool?.address ?? (await addressOf(issuer)));
    const { service, keys } = await client.getKeys({});
    if (service !== issuer)
      throw keysUnavailable(issuer, `its address belongs to ${service || 'an unknown service'}`);
    return new Map(await Promise.all(keys.map((key) => readKey(issuer, key))));
  };

  const remote = new Map(
    SERVICE_NAMES.map((issuer) => [issuer, new IssuerKeys(issuer, () => fetchKeys(issuer), clock)]),
  );
  const pooled = new Map(
    workerPools.map((pool) => [
      pool,
      new IssuerKeys('agent-worker', () => fetchKeys('agent-worker', pool), clock),
    ]),
  );
  const own = self && signerKeys(self);
  return {
    pooledTenants: workerPools.flatMap(({ tenants }) => tenants),
    async key(issuer, keyId, tenants = []) {
      if (own !== undefined && issuer === self?.service) return own(keyId);
      const pool = issuer === 'agent-worker' ? poolOfWorker(workerPools, tenants) : undefined;
      const keys = pool === undefined ? remote.get(issuer) : pooled.get(pool);
      return keys?.find(keyId);
    },
    async refresh(issuer) {
      await remote.get(issuer)?.refresh();
    },
    close() {
      for (const client of clients.values()) client.close();
      clients.clear();
    },
  };
}

async function readKey(
  issuer: ServiceName,
  { keyId, jwkJson, notAfter }: PublicKeyMessage,
): Promise<[string, TrustedKey]> {
  const x = publicPart(jwkJson);
  if (x === undefined || (await keyIdOf(x)) !== keyId)
    throw keysUnavailable(issuer, 'it returned a malformed key');
  return [
    keyId,
    {
      key: publicKey(x),
      notAfter: notAfter === undefined ? undefined : timestampDate(notAfter),
    },
  ];
}

function publicPart(jwkJson: string): string | undefined {
  let jwk: JsonValue;
  try {
    jwk = JSON.parse(jwkJson);
  } catch {
    return undefined;
  }
  if (!isJsonObject(jwk) || jwk.kty !== 'OKP' || jwk.crv !== 'Ed25519') return undefined;
  return typeof jwk.x === 'string' ? jwk.x : undefined;
}
