import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DescService } from '@bufbuild/protobuf';
import { type Bus, createInProcessBus } from '@writ/bus';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { API_KEYS_FILE, openApiKeys } from '@writ/identity';
import type { Clock } from '@writ/kernel';
import {
  type CallOptions,
  type ClosableRpcClient,
  createRpcClient,
  type Person,
  type RpcClient,
} from '@writ/rpc';
import { createTelemetry, InMemorySpans } from '@writ/telemetry';
import { storeVariables, testStore } from '@writ/testing/postgres';
import { waitForLine } from '@writ/testing/processes';
import {
  createSupervisor,
  SUPERVISOR_DEFAULTS,
  type SupervisorConfig,
  type SupervisorService,
} from '../src/index.ts';
import { openSupervisorStore, type SupervisorStore } from '../src/store/supervisor-store.ts';
import { FakePeers } from './fake-peers.ts';

/** People of three tenants. */
const PEOPLE = {
  anna: { subject: 'anna', tenant: 'acme', roles: ['caller', 'approver', 'admin'] },
  boris: { subject: 'boris', tenant: 'acme', roles: ['caller'] },
  dora: { subject: 'dora', tenant: 'acme', roles: ['approver'] },
  /** The program of an external agent. */
  bot: { subject: 'bot', tenant: 'acme', roles: ['agent'], agent: 'external-bot' },
  eve: { subject: 'eve', tenant: 'rivals', roles: ['caller', 'approver', 'admin'] },
  /** A person of a tenant without runs. */
  olga: { subject: 'olga', tenant: 'ops', roles: ['admin', 'operator'] },
} as const satisfies Record<string, Person>;

/** One of {@link PEOPLE}. */
export type PersonName = keyof typeof PEOPLE;

/** The agents of the tests. */
const AGENTS_YAML = `
agents:
  - name: worker
    kind: json-action
    description: Works.
    instructions: Work.
    model: { model: main, also_allowed: ["sim-*"] }
    tools: [look, act]
    limits: { max_steps: 8, max_tool_calls: 5 }
    budget: { max_seconds: 30, max_tokens: 1000, deadline: 10m }
  - name: slow
    kind: json-action
    model: { model: main }
    budget: { deadline: 10m }
  - name: helper
    kind: react
    model: { model: main }
`;

/** A policy that approves everything. */
const POLICY_YAML = `
policy: approve-all
rules:
  - id: anything
    decide: approve
    reason: fine
`;

/** A supervisor with real listeners and fake peers, which can be restarted on the same data. */
export class SupervisorUnderTest {
  readonly fakes: FakePeers;
  readonly spans = new InMemorySpans();
  /** The counters that were incremented, in order. */
  readonly counted: string[] = [];
  /** Delivers events of the fakes to the supervisor. */
  readonly bus: Bus;
  readonly #dataDir: string;
  readonly #keys: Readonly<Record<string, string>>;
  readonly #changes: Partial<SupervisorConfig>;
  readonly #clock: Clock | undefined;
  /** Workers in the pool of the tenant rivals; undefined when all tenants share the same workers. */
  readonly pool: FakePeers | undefined;
  readonly #clients: { close(): void }[] = [];
  readonly #replicas: SupervisorService[] = [];
  #service: SupervisorService | undefined;

  private constructor(
    fakes: FakePeers,
    dataDir: string,
    keys: Readonly<Record<string, string>>,
    changes: Partial<SupervisorConfig>,
    {
      clock,
      pool,
      bus,
    }: {
      readonly clock?: Clock | undefined;
      readonly pool?: FakePeers | undefined;
      readonly bus?: Bus | undefined;
    },
  ) {
    this.bus = bus ?? createInProcessBus({ onError: () => undefined });
    this.fakes = fakes;
    this.#dataDir = dataDir;
    this.#keys = keys;
    this.#changes = changes;
    this.#clock = clock;
    this.pool = pool;
  }

  /** Starts a supervisor with its own fake peers. */
  static async start(
    options: {
      readonly config?: Partial<SupervisorConfig>;
      readonly clock?: Clock;
      readonly pooled?: boolean;
      /** Closed with the supervisor; default: an in-process bus. */
      readonly bus?: Bus;
    } = {},
  ): Promise<SupervisorUnderTest> {
    const dataDir = await mkdtemp(join(tmpdir(), 'writ-supervisor-'));
    const apiKeys = openApiKeys({ file: join(dataDir, API_KEYS_FILE) });
    const keys: Record<string, string> = {};
    for (const [name, person] of Object.entries(PEOPLE)) keys[name] = await apiKeys.create(person);
    const { config = {}, clock, bus } = options;
    const fakes = await FakePeers.start(clock);
    const pool = options.pooled === true ? await FakePeers.start(clock) : undefined;
    const started = new SupervisorUnderTest(fakes, dataDir, keys, config, { clock, pool, bus });
    await started.restart();
    return started;
  }

  /** The running service. */
  get service(): SupervisorService {
    if (this.#service === undefined) throw new Error('The supervisor is stopped.');
    return this.#service;
  }

  get config(): SupervisorConfig {
    return {
      ...SUPERVISOR_DEFAULTS,
      // Tests advance the clock by hours, so the comparison with the peers is off unless a test sets the interval.
      reconcileMs: 365 * 24 * 3_600_000,
      port: 0,
      edge: { host: '127.0.0.1', port: 0 },
      dataDir: this.#dataDir,
      store: testStore({ dialect: 'sqlite', file: join(this.#dataDir, 'supervisor.db') }),
      agents: { text: AGENTS_YAML, file: 'agents.yaml' },
      policy: { text: POLICY_YAML, file: 'policy.yaml' },
      sweepMs: 10,
      orderRetryMs: 5,
      orderRetryMaxMs: 20,
      watchPollMs: 50,
      // Long, so that slow tests that compare whole timelines receive no heartbeats.
      watchHeartbeatMs: 600_000,
      drainMs: 50,
      // The supervisor trusts its own clock immediately, because it learns the clocks of its peers only with the first
      // call.
      clockAloneMs: 0,
      ...this.#changes,
    };
  }

  /** Starts another supervisor on the same data. */
  async startReplica(): Promise<SupervisorService> {
    const service = await this.#create();
    this.#replicas.push(service);
    return service;
  }

  /** Starts the service on the stored data. */
  async restart(): Promise<void> {
    this.#service = await this.#create();
  }

  async #create(): Promise<SupervisorService> {
    const telemetry = createTelemetry({
      service: 'supervisor',
      logLevel: 'silent',
      spanProcessors: [this.spans],
    });
    const count = (metric: string) => void this.counted.push(metric);
    const service = await createSupervisor(this.config, {
      telemetry: { ...telemetry, metrics: { ...telemetry.metrics, enabled: true, count } },
      bus: this.bus,
      addressOf: this.fakes.addressOf,
      ...(this.pool && {
        workerPools: [{ address: this.pool.addressOf('agent-worker'), tenants: ['rivals'] }],
      }),
      ...(this.#clock && { clock: this.#clock }),
    });
    await service.start();
    return service;
  }

  /** Stops the service and keeps its data. */
  async stop(): Promise<void> {
    for (const client of this.#clients.splice(0)) client.close();
    for (const service of this.#replicas.splice(0)) await service.stop();
    const service = this.#service;
    this.#service = undefined;
    await service?.stop();
  }

  /** A client of a public service with the credentials of a person. */
  as<S extends DescService>(
    name: PersonName,
    service: S,
    address = this.service.edgeAddress,
  ): ClosableRpcClient<S> {
    const key = this.#keys[name] ?? '';
    const client = createRpcClient(service, {
      address,
      telemetry: createTelemetry({ service: 'client', logLevel: 'silent' }),
      serviceToken: async () => key,
    });
    this.#clients.push(client);
    return client;
  }

  /** A client of RunService with the credentials of a person. */
  runs(name: PersonName = 'anna', address?: string): ClosableRpcClient<typeof RunService> {
    return this.as(name, RunService, address);
  }

  /** The API key of a person. */
  apiKey(name: PersonName): string {
    return this.#keys[name] ?? '';
  }

  /** Starts a supervisor on the same data in a child process. */
  async spawnProcess(
    changes: {
      readonly execArgv?: readonly string[];
      readonly env?: Readonly<Record<string, string>>;
      readonly agents?: string;
      readonly policy?: string;
    } = {},
  ): Promise<{
    readonly child: ChildProcess;
    readonly address: string;
    readonly edgeAddress: string;
  }> {
    const agentsFile = join(this.#dataDir, 'agents.yaml');
    const policyFile = join(this.#dataDir, 'policy.yaml');
    await writeFile(agentsFile, changes.agents ?? AGENTS_YAML);
    await writeFile(policyFile, changes.policy ?? POLICY_YAML);
    const { addressOf } = this.fakes;
    const main = join(import.meta.dirname, '../src/main.ts');
    const child = spawn(process.execPath, [...(changes.execArgv ?? []), main], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        WRIT_LOG_LEVEL: 'silent',
        WRIT_DATA: this.#dataDir,
        WRIT_AGENTS_FILE: agentsFile,
        WRIT_POLICY_FILE: policyFile,
        WRIT_SUPERVISOR_PORT: '0',
        WRIT_EDGE_PORT: '0',
        WRIT_SPAWN_BUDGET_ADDRESS: addressOf('spawn-budget'),
        WRIT_EXECUTION_METER_ADDRESS: addressOf('execution-meter'),
        WRIT_TOOL_GATEWAY_ADDRESS: addressOf('tool-gateway'),
        WRIT_AGENT_WORKER_ADDRESS: addressOf('agent-worker'),
        ...storeVariables('supervisor', this.config.store),
        ...changes.env,
      },
    });
    const listens = /listens on ([^\s,]+), for clients on (\S+)/;
    const [, address = '', edgeAddress = ''] = await waitForLine(child, listens);
    return { child, address, edgeAddress };
  }

  /** A client and call options with which a worker acts for the latest delivered root. */
  async worker(): Promise<{
    readonly supervision: RpcClient<typeof SupervisionService>;
    readonly options: CallOptions;
  }> {
    const [delivery] = this.fakes.deliveries.slice(-1);
    const supervision = this.fakes
      .peer('agent-worker')
      .client(SupervisionService, { audience: 'supervisor', address: this.service.address });
    this.#clients.push(supervision);
    const agentToken = delivery?.credentials?.supervisorToken ?? '';
    const { tenant = '', supervision: supervised, agent } = delivery ?? {};
    const slotGrant = await this.fakes.peer('spawn-budget').slotGrant({
      tenant,
      runId: supervised?.runId ?? '',
      agentInstance: agent?.instance ?? '',
    });
    return { supervision, options: { agentToken, slotGrant, epoch: 1n } };
  }

  /** Stops everything and deletes the data. */
  async close(): Promise<void> {
    await this.stop();
    await this.bus.close();
    await this.fakes.close();
    await this.pool?.close();
    await rm(this.#dataDir, { recursive: true, force: true });
  }
}

/** Opens the store of a supervisor a second time; the caller closes it. */
export async function openSecondStore({ config }: SupervisorUnderTest): Promise<SupervisorStore> {
  return await openSupervisorStore(config.store, () => undefined);
}
