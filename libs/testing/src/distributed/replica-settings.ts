import { SERVICE_NAMES, type ServiceName } from '@writ/identity';
import type { TestCertificates } from '../certificates/index.ts';
import type { DedicatedPostgres } from '../postgres/index.ts';
import { type PartName, type ReplicaId, variableOf } from './parts.ts';
import type { Wiring } from './wiring.ts';

/** What all replicas of a platform share. */
export interface SharedSettings {
  /** Settings for every service. */
  readonly env: Readonly<Record<string, string>>;
  readonly ids: readonly ReplicaId[];
  readonly wiring: Wiring;
  readonly postgres: DedicatedPostgres;
  /** The password of a service's NATS user. */
  readonly natsPassword: (service: ServiceName) => string;
  /** Where the model answers, a base URL. */
  readonly modelUrl: string;
  /** Everybody's, where all is TLS. */
  readonly certificates: TestCertificates | undefined;
}

/** The ports of one replica. */
export interface ReplicaPorts {
  readonly port: number;
  /** For a supervisor's public door. */
  readonly edgePort: number;
}

/** Every variable that a replica is started with; lays the wires from it to everybody else. */
export async function replicaSettings(
  id: ReplicaId,
  { port, edgePort }: ReplicaPorts,
  { env, ids, wiring, postgres, natsPassword, modelUrl, certificates }: SharedSettings,
): Promise<Record<string, string>> {
  const wireTo = (to: PartName) => wiring.lay(id.name, to);
  const peers: Record<string, string> = {};
  for (const service of SERVICE_NAMES) {
    if (service === id.service) continue;
    const replicas = ids.filter((each) => each.service === service);
    const addresses = await Promise.all(replicas.map(({ name }) => wireTo(name)));
    peers[variableOf(service, 'ADDRESS')] = addresses.join(',');
  }
  return {
    ...env,
    ...peers,
    ...(id.service === 'execution-meter' ? await modelSettings(modelUrl, wireTo) : {}),
    ...(id.service === 'agent-worker' ? { WRIT_WORKER_ID: id.name } : {}),
    ...(id.service === 'supervisor' ? { WRIT_EDGE_PORT: String(edgePort) } : {}),
    [variableOf(id.service, 'PORT')]: String(port),
    [variableOf(id.service, 'DATABASE_URL')]:
      `${postgres.url(await wireTo('postgres'))}${sslParameters(certificates)}`,
    WRIT_NATS_URL: `${certificates === undefined ? 'nats' : 'tls'}://${await wireTo('nats')}`,
    WRIT_NATS_PASSWORD: natsPassword(id.service),
    ...(certificates && tlsSettings(id, certificates)),
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
  wireTo: (to: PartName) => Promise<string>,
): Promise<Record<string, string>> {
  const url = new URL(modelUrl);
  url.host = await wireTo('model');
  const there = url.href.replace(/\/$/, '');
  return { OPENAI_BASE_URL: there, WRIT_SIMULATOR_URL: there };
}
