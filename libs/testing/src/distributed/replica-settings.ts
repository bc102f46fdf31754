import { join } from 'node:path';
import { SERVICE_NAMES, type ServiceName } from '@writ/identity';
import type { TestCertificates } from '../certificates/index.ts';
import type { DedicatedPostgres } from '../postgres/index.ts';
import type { FaultProxies } from './fault-proxies.ts';
import { type PartName, type ReplicaId, type ReplicaName, variableOf } from './parts.ts';

/** The dedicated workers of each tenant, which serve only this tenant. */
export type TenantWorkers = Readonly<Record<string, readonly ReplicaName[]>>;

/** Settings that all replicas of a platform share. */
export interface SharedSettings {
  /** Environment variables of every service. */
  readonly env: Readonly<Record<string, string>>;
  readonly ids: readonly ReplicaId[];
  readonly proxies: FaultProxies;
  readonly postgres: DedicatedPostgres;
  /** The password of a service's NATS user. */
  readonly natsPassword: (service: ServiceName) => string;
  /** Base URL of the model. */
  readonly modelUrl: string;
  /** Present with TLS. */
  readonly certificates: TestCertificates | undefined;
  readonly tenantWorkers: TenantWorkers;
  /** Folder below which each pool of dedicated workers has its data folder with its keys. */
  readonly dataDir: string;
}

/** The ports of one replica. */
export interface ReplicaPorts {
  readonly port: number;
  /** Port of the public listener of a supervisor, or of the listener of agent-proxy for external agents. */
  readonly edgePort: number;
}

/** Returns the environment of a replica; opens its fault proxies to every other part. */
export async function replicaSettings(
  id: ReplicaId,
  { port, edgePort }: ReplicaPorts,
  shared: SharedSettings,
): Promise<Record<string, string>> {
  const { env, ids, proxies, postgres, natsPassword, modelUrl, certificates } = shared;
  const proxyTo = (to: PartName) => proxies.open(id.name, to);
  const peers: Record<string, string> = {};
  for (const service of SERVICE_NAMES) {
    const replicas = ids.filter((each) => each.service === service);
    if (service === id.service || replicas.length === 0) continue;
    const addresses = new Map<ReplicaName, string>();
    for (const { name } of replicas) addresses.set(name, await proxyTo(name));
    Object.assign(peers, addressSettings(service, addresses, shared));
  }
  return {
    ...env,
    ...peers,
    ...(id.service === 'execution-meter' ? await modelSettings(modelUrl, proxyTo) : {}),
    ...(id.service === 'agent-worker' ? { WRIT_WORKER_ID: id.name } : {}),
    ...(id.service === 'supervisor' ? { WRIT_EDGE_PORT: String(edgePort) } : {}),
    ...(id.service === 'agent-proxy' ? { WRIT_AGENT_PROXY_ENDPOINT_PORT: String(edgePort) } : {}),
    [variableOf(id.service, 'PORT')]: String(port),
    [variableOf(id.service, 'DATABASE_URL')]:
      `${postgres.url(await proxyTo('postgres'))}${sslParameters(certificates)}`,
    ...(await natsSettings(id, { natsPassword, certificates }, proxyTo)),
    ...(certificates && tlsSettings(id, certificates)),
    ...poolSettings(id, shared),
  };
}

/**
 * Returns the variables with the addresses of a service. The dedicated workers of a tenant are listed in
 * WRIT_AGENT_WORKER_POOLS, not in the address of agent-worker.
 */
function addressSettings(
  service: ServiceName,
  addresses: ReadonlyMap<ReplicaName, string>,
  { tenantWorkers }: SharedSettings,
): Record<string, string> {
  const pooled = Object.entries(tenantWorkers).flatMap(([tenant, names]) =>
    names.map((name) => ({ tenant, name })),
  );
  const others = [...addresses].filter(([name]) => !pooled.some((each) => each.name === name));
  const pools = pooled.flatMap(({ tenant, name }) => {
    const address = addresses.get(name);
    return address === undefined ? [] : [`${tenant}=${address}`];
  });
  return {
    [variableOf(service, 'ADDRESS')]: others.map(([, address]) => address).join(','),
    ...(pools.length > 0 && { WRIT_AGENT_WORKER_POOLS: pools.join(',') }),
  };
}

/** Returns the variables that give the workers of a pool separate keys and tables (SYS-6); empty for other replicas. */
function poolSettings({ name }: ReplicaId, { tenantWorkers, dataDir }: SharedSettings) {
  const [tenant] = Object.keys(tenantWorkers).filter((each) => tenantWorkers[each]?.includes(name));
  if (tenant === undefined) return {};
  return {
    WRIT_DATA: join(dataDir, 'pools', tenant),
    WRIT_WORKER_TENANTS: tenant,
    WRIT_AGENT_WORKER_DATABASE_SCHEMA: `agent_worker_${tenant}`,
  };
}

/** Returns the variables for the connection to NATS; none for agent-proxy, which publishes and receives no events. */
async function natsSettings(
  { service }: ReplicaId,
  { natsPassword, certificates }: Pick<SharedSettings, 'natsPassword' | 'certificates'>,
  proxyTo: (to: PartName) => Promise<string>,
): Promise<Record<string, string>> {
  if (service === 'agent-proxy') return {};
  return {
    WRIT_NATS_URL: `${certificates === undefined ? 'nats' : 'tls'}://${await proxyTo('nats')}`,
    WRIT_NATS_PASSWORD: natsPassword(service),
  };
}

function tlsSettings({ service }: ReplicaId, certificates: TestCertificates) {
  const { caFile, certFile, keyFile } = certificates;
  return {
    ...certificates.env(service),
    WRIT_NATS_CA_FILE: caFile,
    WRIT_NATS_CERT_FILE: certFile(service),
    WRIT_NATS_KEY_FILE: keyFile(service),
    ...(service === 'supervisor' && {
      WRIT_EDGE_TLS_CERT_FILE: certFile('edge'),
      WRIT_EDGE_TLS_KEY_FILE: keyFile('edge'),
    }),
  };
}

function sslParameters(certificates: TestCertificates | undefined): string {
  if (certificates === undefined) return '';
  return `?sslmode=verify-full&sslrootcert=${encodeURIComponent(certificates.caFile)}`;
}

async function modelSettings(
  modelUrl: string,
  proxyTo: (to: PartName) => Promise<string>,
): Promise<Record<string, string>> {
  const url = new URL(modelUrl);
  url.host = await proxyTo('model');
  const baseUrl = url.href.replace(/\/$/, '');
  return { OPENAI_BASE_URL: baseUrl, WRIT_SIMULATOR_URL: baseUrl };
}
