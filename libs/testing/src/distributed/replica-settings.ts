import { SERVICE_NAMES, type ServiceName } from '@writ/identity';
import type { TestCertificates } from '../certificates/index.ts';
import type { DedicatedPostgres } from '../postgres/index.ts';
import type { FaultProxies } from './fault-proxies.ts';
import { type PartName, type ReplicaId, variableOf } from './parts.ts';

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
}

/** The ports of one replica. */
export interface ReplicaPorts {
  readonly port: number;
  /** Port of the public listener of a supervisor, or of the one for external agents. */
  readonly edgePort: number;
}

/** Returns the environment of a replica; opens its fault proxies to every other part. */
export async function replicaSettings(
  id: ReplicaId,
  { port, edgePort }: ReplicaPorts,
  { env, ids, proxies, postgres, natsPassword, modelUrl, certificates }: SharedSettings,
): Promise<Record<string, string>> {
  const proxyTo = (to: PartName) => proxies.open(id.name, to);
  const peers: Record<string, string> = {};
  for (const service of SERVICE_NAMES) {
    const replicas = ids.filter((each) => each.service === service);
    if (service === id.service || replicas.length === 0) continue;
    const addresses = await Promise.all(replicas.map(({ name }) => proxyTo(name)));
    peers[variableOf(service, 'ADDRESS')] = addresses.join(',');
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
  };
}

/** agent-proxy publishes and receives no events. */
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
