import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { natsAuthorization, SERVICE_USERS } from '@writ/bus';
import { createWritClient, type WritClient } from '@writ/client';
import { devApiKey, SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { type Example, loadExample, openModelSource, readPlatformConfig } from '@writ/platform';
import { traceparentOf } from '@writ/telemetry';
import { generateTestCertificates, type TestCertificates } from '../certificates/index.ts';
import type { ProxyFault } from '../faults/index.ts';
import { isNatsAvailable, type NatsServer, startNatsServer } from '../nats/index.ts';
import {
  type DedicatedPostgres,
  isPostgresAvailable,
  startDedicatedPostgres,
} from '../postgres/index.ts';
import { freePorts } from '../processes/free-ports.ts';
import { type RequestRecord, readRequestLog } from '../simulator/index.ts';
import {
  type PartName,
  type ReplicaCounts,
  type ReplicaId,
  type ReplicaName,
  replicaIds,
  type Selector,
} from './parts.ts';
import { type Replica, ReplicaProcess } from './replica.ts';
import { replicaSettings } from './replica-settings.ts';
import { type Row, StoreReader } from './store-reader.ts';
import { Wiring } from './wiring.ts';

/** What a distributed platform may differ in. */
export interface DistributedOptions {
  /** The example that it runs, or its name; the refund desk when not given. */
  readonly example?: Example | string;
  /** How many replicas each service has, or some of them; default 2. */
  readonly replicas?: number | Partial<ReplicaCounts>;
  /** Settings of every replica beside the defaults, as environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Whether everybody calls everybody else over TLS, services mutually. */
  readonly tls?: boolean;
  /** Further settings of one replica. */
  readonly envOf?: (replica: ReplicaId) => Readonly<Record<string, string>>;
}

/**
 * Every service as several processes, with PostgreSQL, NATS and a simulated model of its own, and a
 * wire that can fail between any two of them (SYS-5). Replicas share a folder with keys, and nothing else.
 */
export interface DistributedPlatform {
  /** With the development key, by way of the first supervisor. */
  readonly client: WritClient;
  /** The same, by way of each supervisor. */
  readonly clients: readonly WritClient[];
  /** Base URLs of the supervisors' public doors. */
  readonly edgeUrls: readonly string[];
  readonly apiKey: string;
  /** Keys, and what tools keep. */
  readonly dataDir: string;
  readonly replicas: readonly Replica[];
  /** Present when the platform was started with TLS. */
  readonly certificates?: TestCertificates;
  readonly nats: NatsServer;
  readonly postgres: DedicatedPostgres;
  /** @throws Error when there is no such replica */
  replica(name: ReplicaName): Replica;
  /** What becomes of all connections that `from` makes to `to`, until it is healed. */
  fail(from: Selector, to: Selector, fault: ProxyFault): void;
  /** Cuts every connection between the two, whoever calls. */
  cut(one: Selector, other: Selector): void;
  /** Mends every wire. */
  heal(): void;
  /** What a query finds in a service's store. */
  rows(service: ServiceName, sql: string, values?: readonly unknown[]): Promise<Row[]>;
  /** What the model was asked, in order. */
  modelRequests(): readonly RequestRecord[];
  /** Kills everything and removes its data. */
  close(): Promise<void>;
}

/** Whether this machine has what a distributed platform needs; otherwise it says what is missing, once. */
export function isDistributedPlatformAvailable(): boolean {
  const found = [isNatsAvailable(), isPostgresAvailable()];
  return found.every(Boolean);
}

/** Starts a distributed platform; resolves when every replica listens. */
export async function startDistributedPlatform(
  options: DistributedOptions = {},
): Promise<DistributedPlatform> {
  const opened = new AsyncDisposableStack();
  try {
    return await open(options, opened);
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

async function open(
  options: DistributedOptions,
  opened: AsyncDisposableStack,
): Promise<DistributedPlatform> {
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-distributed-'));
  opened.defer(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 }));
  const { example: wanted = 'refund-desk' } = options;
  const example = typeof wanted === 'string' ? loadExample(wanted) : wanted;
  const ids = replicaIds(countsOf(options.replicas ?? 2));
  const supervisors = ids.filter(({ service }) => service === 'supervisor');
  const [natsPort = 0, postgresPort = 0, ...ports] = await freePorts(2 + 2 * ids.length);

  const certificates =
    options.tls === true ? await generateTestCertificates(join(dataDir, 'tls')) : undefined;
  const nats = await startNats(natsPort, certificates);
  opened.defer(() => nats.stop());
  const postgres = await startDedicatedPostgres(
    postgresPort,
    certificates && {
      certFile: certificates.certFile('postgres'),
      keyFile: certificates.keyFile('postgres'),
    },
  );
  opened.defer(() => postgres.stop());
  const model = await openModelSource({}, example, { script: example.script, dataDir });
  opened.defer(() => model.close());
  const apiKey = await devApiKey(dataDir);
  const modelUrl = model.env.WRIT_SIMULATOR_URL ?? '';

  const places = ids.map((id, at) => ({
    id,
    ports: { port: ports[2 * at] ?? 0, edgePort: ports[2 * at + 1] ?? 0 },
  }));
  const targets = new Map<PartName, string>([
    ...places.map(({ id, ports: { port } }) => [id.name, `127.0.0.1:${port}`] as const),
    ['nats', nats.address],
    ['postgres', postgres.address],
    ['model', new URL(modelUrl).host],
  ]);
  const wiring = new Wiring(targets);
  opened.defer(() => wiring.close());
  const shared = {
    env: {
      ...readPlatformConfig({}, { example, model, dataDir }).env,
      WRIT_LOG_LEVEL: 'warn',
      ...options.env,
    },
    ids,
    wiring,
    postgres,
    natsPassword,
    modelUrl,
    certificates,
  };
  const replicas = await Promise.all(
    places.map(async ({ id, ports: own }) => {
      const env = { ...(await replicaSettings(id, own, shared)), ...options.envOf?.(id) };
      return new ReplicaProcess(id, targets.get(id.name) ?? '', env);
    }),
  );
  opened.defer(() => endAll(replicas));
  await Promise.all(replicas.map((each) => each.start()));

  const edgeUrls = supervisors.map(({ name }) => {
    const place = places.find(({ id }) => id.name === name);
    const scheme = certificates === undefined ? 'http' : 'https';
    return `${scheme}://127.0.0.1:${place?.ports.edgePort}`;
  });
  const clients = edgeUrls.map((baseUrl) =>
    createWritClient({
      baseUrl,
      apiKey,
      traceparent: traceparentOf,
      ...(certificates && { ca: certificates.ca }),
    }),
  );
  const [client] = clients;
  if (client === undefined) throw new Error('A platform needs a supervisor.');
  const reader = new StoreReader(() => postgres.url(), certificates?.ca);
  return {
    client,
    clients,
    edgeUrls,
    apiKey,
    dataDir,
    replicas,
    ...(certificates && { certificates }),
    nats,
    postgres,
    replica: (name) => {
      const found = replicas.find((each) => each.name === name);
      if (found === undefined) throw new Error(`There is no replica ${name}.`);
      return found;
    },
    fail: (from, to, fault) => wiring.fail(from, to, fault),
    cut: (one, other) => wiring.cut(one, other),
    heal: () => wiring.heal(),
    rows: (service, sql, values) => reader.rows(service, sql, values),
    modelRequests: () => readRequestLog(join(dataDir, 'simulator-requests.jsonl')),
    close: () => opened.disposeAsync(),
  };
}

function countsOf(replicas: number | Partial<ReplicaCounts>): ReplicaCounts {
  const given = typeof replicas === 'number' ? {} : replicas;
  const otherwise = typeof replicas === 'number' ? replicas : 2;
  return Object.fromEntries(
    SERVICE_NAMES.map((service) => [service, given[service] ?? otherwise]),
  ) as unknown as ReplicaCounts;
}

/** A server that knows the services and what each of them may say and hear. */
async function startNats(
  port: number,
  certificates: TestCertificates | undefined,
): Promise<NatsServer> {
  const passwords = SERVICE_USERS.map(({ service, passwordVariable }) => [
    passwordVariable,
    natsPassword(service),
  ]);
  return await startNatsServer({
    port,
    config: `${natsAuthorization(SERVICE_USERS)}\n${certificates ? natsTls(certificates) : ''}`,
    env: Object.fromEntries(passwords),
  });
}

/** Only whoever shows a certificate of the authority is let in. */
function natsTls({ certFile, keyFile, caFile }: TestCertificates): string {
  const files = { cert_file: certFile('nats'), key_file: keyFile('nats'), ca_file: caFile };
  const lines = Object.entries(files).map(([name, file]) => `${name}: ${JSON.stringify(file)}`);
  return `tls { ${lines.join('\n')}\nverify: true }\n`;
}

function natsPassword(service: string): string {
  return `p-${service}`;
}

async function endAll(replicas: readonly Replica[]): Promise<void> {
  await Promise.all(replicas.map((each) => each.kill()));
}
