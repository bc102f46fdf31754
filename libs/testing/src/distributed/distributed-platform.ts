import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { OBSERVER_USER, SERVICE_USERS } from '@writ/bus';
import { createWritClient, type WritClient } from '@writ/client';
import { devApiKey, SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { type Example, loadExample, openModelSource, readPlatformConfig } from '@writ/platform';
import { type RequestRecord, readRequestLog } from '@writ/simulator';
import { traceparentOf } from '@writ/telemetry';
import { generateTestCertificates, type TestCertificates } from '../certificates/index.ts';
import { FakeClock, openSmallDisk, type ProxyFault, type SmallDisk } from '../faults/index.ts';
import { isNatsAvailable, type NatsServer, startNatsServer } from '../nats/index.ts';
import {
  type DedicatedPostgres,
  isPostgresAvailable,
  startDedicatedPostgres,
} from '../postgres/index.ts';
import { freePorts } from '../processes/free-ports.ts';
import { FaultProxies } from './fault-proxies.ts';
import {
  type PartName,
  type ReplicaCounts,
  type ReplicaId,
  type ReplicaName,
  replicaIds,
  type Selector,
} from './parts.ts';
import { type Replica, ReplicaProcess } from './replica.ts';
import { replicaSettings, type TenantWorkers } from './replica-settings.ts';
import { type Row, StoreReader } from './store-reader.ts';

const USERS_CONF = resolve(import.meta.dirname, '../../../../deploy/nats/users.conf');

/** Options of {@link startDistributedPlatform}. */
export interface DistributedOptions {
  /** The example to run, or its name; default `refund-desk`. */
  readonly example?: Example | string;
  /**
   * Number of replicas: one number for every service except agent-proxy, or a number per service. Default: 2 per
   * service, and 0 for agent-proxy.
   */
  readonly replicas?: number | Partial<ReplicaCounts>;
  /** Environment variables of every replica on top of the defaults. */
  readonly env?: Readonly<Record<string, string>>;
  /** Whether all connections use TLS; mutual TLS between services. */
  readonly tls?: boolean;
  /**
   * Source tree that the replicas run when they are first started; default: this repository. See {@link Replica.start}.
   */
  readonly build?: string;
  /** Additional environment variables of one replica. */
  readonly envOf?: (replica: ReplicaId) => Readonly<Record<string, string>>;
  /**
   * Dedicated workers by tenant: they serve only this tenant, and have separate keys and the separate schema
   * `agent_worker_<tenant>`.
   */
  readonly tenantWorkers?: TenantWorkers;
  /** Whether a test sets the clock of each replica; requires libfaketime. */
  readonly fakeClocks?: boolean;
  /**
   * Size in MB of a file system that stores the tables of all services; requires the permission to mount file systems.
   */
  readonly diskMb?: number;
  /** Whether connections pass through fault proxies; default true. Without them `fail` and `cut` throw. */
  readonly faultProxies?: boolean;
  /** More settings of PostgreSQL, for example `{ fsync: 'on' }`; default no fsync. */
  readonly postgresSettings?: Readonly<Record<string, string>>;
}

/**
 * The services as separate processes, by default two replicas of every service except agent-proxy, with a dedicated
 * PostgreSQL, NATS and simulated model. Unless `faultProxies` is false, each connection between any two of them passes
 * through a fault proxy (SYS-5). The replicas share one data folder; each pool of dedicated workers has a separate one.
 */
export interface DistributedPlatform {
  /** A client of the first supervisor with the development key. */
  readonly client: WritClient;
  /** One client per supervisor, with the development key. */
  readonly clients: readonly WritClient[];
  /** Base URLs of the supervisors' public listeners. */
  readonly edgeUrls: readonly string[];
  /** Base URLs of the listeners for external agents, without a path. */
  readonly endpointUrls: readonly string[];
  readonly apiKey: string;
  /** Folder with keys and the data of tools. */
  readonly dataDir: string;
  readonly replicas: readonly Replica[];
  /** Present with TLS. */
  readonly certificates?: TestCertificates;
  readonly nats: NatsServer;
  readonly postgres: DedicatedPostgres;
  /** The file system of the tables of all services; present with `diskMb`. The write-ahead log is on another one. */
  readonly disk?: SmallDisk;
  /** @throws Error when the replica does not exist */
  replica(name: ReplicaName): Replica;
  /** Injects a fault into all connections from `from` to `to`, until `heal()`. */
  fail(from: Selector, to: Selector, fault: ProxyFault): void;
  /** Cuts every connection between the two, in both directions. */
  cut(one: Selector, other: Selector): void;
  /** Removes every fault. */
  heal(): void;
  /** Runs a query on a service's store. */
  rows(service: ServiceName, sql: string, values?: readonly unknown[]): Promise<Row[]>;
  /** Requests to the model in order. */
  modelRequests(): readonly RequestRecord[];
  /** Kills every process and deletes the data. */
  close(): Promise<void>;
}

/** Whether NATS and PostgreSQL are installed; reports missing ones once on standard error. */
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
  const { example: requested = 'refund-desk' } = options;
  const example = typeof requested === 'string' ? loadExample(requested) : requested;
  const ids = replicaIds(countsOf(options.replicas ?? 2));
  const [natsPort = 0, postgresPort = 0, ...ports] = await freePorts(2 + 2 * ids.length);

  const servers = await openServers(options, { dataDir, natsPort, postgresPort }, opened);
  const { certificates, nats, postgres, disk } = servers;
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
  const proxies = new FaultProxies(targets, options.faultProxies ?? true);
  opened.defer(() => proxies.close());
  const shared = {
    env: {
      ...readPlatformConfig({}, { example, model, dataDir }).env,
      WRIT_LOG_LEVEL: 'warn',
      ...options.env,
    },
    ids,
    proxies,
    postgres,
    natsPassword,
    modelUrl,
    certificates,
    tenantWorkers: options.tenantWorkers ?? {},
    dataDir,
  };
  const replicas = await Promise.all(
    places.map(async ({ id, ports: own }) => {
      const env = { ...(await replicaSettings(id, own, shared)), ...options.envOf?.(id) };
      const clock =
        options.fakeClocks === true ? new FakeClock(join(dataDir, `${id.name}.clock`)) : undefined;
      return new ReplicaProcess(id, targets.get(id.name) ?? '', env, clock);
    }),
  );
  opened.defer(() => endAll(replicas));
  await Promise.all(replicas.map((each) => each.start(options.build)));

  const publicUrls = (service: ServiceName, scheme: string): string[] =>
    places
      .filter(({ id }) => id.service === service)
      .map((place) => `${scheme}://127.0.0.1:${place.ports.edgePort}`);
  const edgeUrls = publicUrls('supervisor', certificates === undefined ? 'http' : 'https');
  const clients = edgeUrls.map((baseUrl) =>
    createWritClient({
      baseUrl,
      apiKey,
      traceparent: traceparentOf,
      ...(certificates && { ca: certificates.ca }),
    }),
  );
  const [client] = clients;
  if (client === undefined)
    throw new Error('A distributed platform requires at least one supervisor.');
  const reader = new StoreReader(() => postgres.url(), certificates?.ca);
  return {
    client,
    clients,
    edgeUrls,
    endpointUrls: publicUrls('agent-proxy', 'http'),
    apiKey,
    dataDir,
    replicas,
    ...(certificates && { certificates }),
    nats,
    postgres,
    ...(disk && { disk }),
    replica: (name) => {
      const found = replicas.find((each) => each.name === name);
      if (found === undefined) throw new Error(`Replica "${name}" does not exist.`);
      return found;
    },
    fail: (from, to, fault) => proxies.fail(from, to, fault),
    cut: (one, other) => proxies.cut(one, other),
    heal: () => proxies.heal(),
    rows: (service, sql, values) => reader.rows(service, sql, values),
    modelRequests: () => readRequestLog(join(dataDir, 'simulator-requests.jsonl')),
    close: () => opened.disposeAsync(),
  };
}

/** Starts NATS and PostgreSQL. */
async function openServers(
  { tls, diskMb, postgresSettings }: DistributedOptions,
  place: { readonly dataDir: string; readonly natsPort: number; readonly postgresPort: number },
  opened: AsyncDisposableStack,
) {
  const certificates =
    tls === true ? await generateTestCertificates(join(place.dataDir, 'tls')) : undefined;
  const nats = await startNats(place.natsPort, certificates);
  opened.defer(() => nats.stop());
  const postgres = await startDedicatedPostgres(
    place.postgresPort,
    certificates && {
      certFile: certificates.certFile('postgres'),
      keyFile: certificates.keyFile('postgres'),
    },
    postgresSettings,
  );
  const disk = diskMb === undefined ? undefined : openSmallDisk('/tmp', diskMb);
  opened.defer(() => disk?.close());
  opened.defer(() => postgres.stop());
  if (disk !== undefined) await postgres.keepTablesIn(disk.folder);
  return { certificates, nats, postgres, disk };
}

function countsOf(replicas: number | Partial<ReplicaCounts>): ReplicaCounts {
  const given = typeof replicas === 'number' ? {} : replicas;
  const fallback = typeof replicas === 'number' ? replicas : 2;
  return Object.fromEntries(
    SERVICE_NAMES.map((service) => [
      service,
      given[service] ?? (service === 'agent-proxy' ? 0 : fallback),
    ]),
  ) as unknown as ReplicaCounts;
}

/** Starts NATS with the shipped users and their permissions. */
async function startNats(
  port: number,
  certificates: TestCertificates | undefined,
): Promise<NatsServer> {
  const users = readFileSync(USERS_CONF, 'utf8');
  const passwords = [...SERVICE_USERS, OBSERVER_USER].map(({ service, passwordVariable }) => [
    passwordVariable,
    natsPassword(service),
  ]);
  return await startNatsServer({
    port,
    config: `${users}\n${certificates ? natsTls(certificates) : ''}`,
    env: Object.fromEntries(passwords),
  });
}

/**
 * Returns the TLS section of the NATS configuration. NATS then accepts only clients that present a certificate of the
 * CA.
 */
function natsTls({ certFile, keyFile, caFile }: TestCertificates): string {
  const files = { cert_file: certFile('nats'), key_file: keyFile('nats'), ca_file: caFile };
  const lines = Object.entries(files).map(([name, file]) => `${name}: ${JSON.stringify(file)}`);
  return `tls { ${lines.join('\n')}\nverify: true }\n`;
}

/** The password of a user of NATS. */
export function natsPassword(service: string): string {
  return `p-${service}`;
}

async function endAll(replicas: readonly Replica[]): Promise<void> {
  await Promise.all(replicas.map((each) => each.kill()));
}
