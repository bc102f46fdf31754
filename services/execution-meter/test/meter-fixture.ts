import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Bus, createInProcessBus, HOOK_SUBJECTS } from '@writ/bus';
import {
  ExecutionMeterService as MeterContract,
  type OpenTabRequestSchema,
} from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import {
  type GenerateRequestSchema,
  type GenerateResponse,
  ModelService,
} from '@writ/contracts/writ/model/v1/model_service_pb';
import { Priority as ContractPriority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { type Clock, Priority, type WritError } from '@writ/kernel';
import type { CallOptions, RpcClient } from '@writ/rpc';
import {
  createModelSimulator,
  type ModelSimulator,
  type Reply,
  type Script,
} from '@writ/simulator';
import { createTelemetry, InMemorySpans } from '@writ/telemetry';
import { addressOf, type KeyPeer, startKeyPeer } from '@writ/testing';
import { storeVariables, testStore } from '@writ/testing/postgres';
import {
  createExecutionMeter,
  EXECUTION_METER_DEFAULTS,
  type ExecutionMeterConfig,
  type ExecutionMeterService,
} from '../src/index.ts';
import { decodeHook, type HookEvent } from './hook-events.ts';
import { type MeterProcess, startMeterProcess } from './meter-process.ts';
import { ask, type Generated, type Init } from './model-calls.ts';
import { modelsYaml } from './models-yaml.ts';

/** Options of a test meter. */
export interface MeterWorldOptions {
  /** Replies of the simulator by script. */
  readonly scripts?: Readonly<Record<string, readonly Reply[]>>;
  /** A complete models.yaml instead of one alias per script. */
  readonly models?: string;
  /** One line of the template that all aliases use, such as `max_retries: 0`. */
  readonly settings?: string;
  readonly tenants?: string;
  readonly file?: boolean;
  /** Called for each request at the simulator, which answers after the returned promise resolves. */
  readonly beforeAnswer?: () => Promise<void>;
  readonly clock?: Clock;
  readonly config?: Partial<ExecutionMeterConfig>;
}

/** Another meter that uses the same data directory, with clients for it. */
export interface OtherMeter {
  readonly meter: ExecutionMeterService;
  readonly tab: RpcClient<typeof MeterContract>;
  readonly model: RpcClient<typeof ModelService>;
}

export const TENANT = 'acme';
export const RUN = 'run-1';
export const AGENT = 'support-1';

/** A meter with its peers, a simulator and a collector of its events and spans. */
export class MeterWorld implements AsyncDisposable {
  readonly spans = new InMemorySpans();
  readonly events: HookEvent[] = [];
  readonly simulator: ModelSimulator;
  readonly supervisor: KeyPeer;
  readonly worker: KeyPeer;
  readonly spawnBudget: KeyPeer;
  readonly #bus: Bus;
  readonly #options: MeterWorldOptions;
  readonly #dir: string;
  readonly #others: ExecutionMeterService[] = [];
  #meter: ExecutionMeterService | undefined;
  #tab: RpcClient<typeof MeterContract> | undefined;
  #model: RpcClient<typeof ModelService> | undefined;

  private constructor(
    options: MeterWorldOptions,
    dir: string,
    simulator: ModelSimulator,
    peers: Pick<MeterWorld, 'supervisor' | 'worker' | 'spawnBudget'>,
  ) {
    this.#options = options;
    this.#dir = dir;
    this.simulator = simulator;
    this.supervisor = peers.supervisor;
    this.worker = peers.worker;
    this.spawnBudget = peers.spawnBudget;
    this.#bus = createInProcessBus({ onError: () => undefined });
  }

  static async start(options: MeterWorldOptions = {}): Promise<MeterWorld> {
    const dir = await mkdtemp(join(tmpdir(), 'writ-meter-'));
    const scripts = Object.entries(options.scripts ?? { hello: [{ text: 'Hello.' }] }).map(
      ([name, replies]): Script => ({
        name,
        entries: replies.map((reply, index) => ({
          ...(index < replies.length - 1 ? { times: 1 } : {}),
          reply,
        })),
      }),
    );
    const { clock, beforeAnswer } = options;
    const peer = clock === undefined ? {} : { clock };
    const world = new MeterWorld(
      options,
      dir,
      await createModelSimulator({
        scripts,
        requestLog: join(dir, 'requests.jsonl'),
        ...(beforeAnswer && { beforeAnswer }),
      }),
      {
        supervisor: await startKeyPeer('supervisor', peer),
        worker: await startKeyPeer('agent-worker', peer),
        spawnBudget: await startKeyPeer('spawn-budget', peer),
      },
    );
    await world.#bus.subscribe({
      subject: HOOK_SUBJECTS,
      durable: 'test',
      handler: async (message) => {
        world.events.push(decodeHook(message));
      },
    });
    await world.boot();
    return world;
  }

  /**
   * Starts a meter with the same data directory. If the previous meter was not stopped, this simulates a restart after
   * a crash.
   */
  async boot(): Promise<ExecutionMeterService> {
    const { file = false, clock, config } = this.#options;
    const meter = await createExecutionMeter(
      {
        ...EXECUTION_METER_DEFAULTS,
        port: 0,
        dataDir: this.#dir,
        store: testStore({
          dialect: 'sqlite',
          file: file ? join(this.#dir, 'meter.db') : ':memory:',
        }),
        catalog: { file: { text: this.#catalog(), file: 'models.yaml' } },
        variables: { SIM_URL: this.simulator.url, SIM_KEY: 'simulated' },
        backoff: { baseMs: 1, maxMs: 2, maxRetryAfterMs: 5 },
        sweepMs: 20,
        drainMs: 50,
        ...config,
      },
      {
        telemetry: createTelemetry({
          service: 'execution-meter',
          logLevel: 'silent',
          spanProcessors: [this.spans],
        }),
        bus: this.#bus,
        addressOf: addressOf(this.supervisor, this.worker, this.spawnBudget),
        ...(clock === undefined ? {} : { clock }),
      },
    );
    this.#meter = meter;
    const { address } = meter;
    this.#tab = this.supervisor.client(MeterContract, { audience: 'execution-meter', address });
    this.#model = this.worker.client(ModelService, { audience: 'execution-meter', address });
    await meter.start();
    return meter;
  }

  /** Starts another meter while the first one keeps running; stop it with `meter.stop()`. */
  async startOther(): Promise<OtherMeter> {
    const previous = [this.#meter, this.#tab, this.#model] as const;
    const meter = await this.boot();
    const other = { meter, tab: this.tab, model: this.model };
    [this.#meter, this.#tab, this.#model] = previous;
    this.#others.push(meter);
    return other;
  }

  /** Starts another meter in its own process. */
  async spawn(): Promise<MeterProcess & Pick<OtherMeter, 'model'>> {
    const { config } = this.#options;
    const models = join(this.#dir, 'models.yaml');
    await writeFile(models, this.#catalog());
    const process = await startMeterProcess({
      WRIT_DATA: this.#dir,
      WRIT_MODELS_FILE: models,
      WRIT_EXECUTION_METER_PORT: '0',
      WRIT_SUPERVISOR_ADDRESS: this.supervisor.address,
      WRIT_AGENT_WORKER_ADDRESS: this.worker.address,
      WRIT_SPAWN_BUDGET_ADDRESS: this.spawnBudget.address,
      WRIT_LOG_LEVEL: 'silent',
      SIM_URL: this.simulator.url,
      SIM_KEY: 'simulated',
      ...(config?.store && storeVariables('execution-meter', config.store)),
    });
    const to = { audience: 'execution-meter', address: process.address } as const;
    return { ...process, model: this.worker.client(ModelService, to) };
  }

  get meter(): ExecutionMeterService {
    return given(this.#meter);
  }

  /** Client of ExecutionMeterService, called by the supervisor. */
  get tab(): RpcClient<typeof MeterContract> {
    return given(this.#tab);
  }

  /** Client of ModelService, called by the worker. */
  get model(): RpcClient<typeof ModelService> {
    return given(this.#model);
  }

  /** Opens the tab of an agent with the aliases of all scripts. */
  openTab(request: Init<typeof OpenTabRequestSchema> = {}) {
    const instance = request.agent?.instance ?? AGENT;
    return this.tab.openTab({
      requestId: `open-${instance}`,
      tenant: TENANT,
      runId: RUN,
      sessionId: 'session-1',
      agent: { name: 'support', instance },
      budget: {},
      models: this.#aliases(),
      priority: ContractPriority.NORMAL,
      ...request,
    });
  }

  /** Call options of a worker for an agent. */
  async credentials(
    instance: string = AGENT,
    { epoch = 1n, priority = Priority.NORMAL }: { epoch?: bigint; priority?: Priority } = {},
  ): Promise<CallOptions> {
    const { executionMeterToken } = await this.supervisor.agentCredentials({
      tenant: TENANT,
      runId: RUN,
      agent: { name: 'support', instance },
      models: [...this.#aliases(), 'unknown'],
      priority,
    });
    const holder = { tenant: TENANT, runId: RUN, agentInstance: instance, priority, epoch };
    // Valid for the duration of a test.
    const slotGrant = await this.spawnBudget.slotGrant(holder, 60_000);
    return { agentToken: executionMeterToken, slotGrant, epoch, timeoutMs: 15_000 };
  }

  /** Makes a Generate call and collects all chunks and the error. */
  async generate(
    request: Init<typeof GenerateRequestSchema> = {},
    options?: CallOptions,
    model: RpcClient<typeof ModelService> = this.model,
    onChunk: () => void = () => undefined,
  ): Promise<Generated> {
    const chunks: GenerateResponse[] = [];
    let error: WritError | undefined;
    try {
      const stream = model.generate(ask(request), options ?? (await this.credentials()));
      for await (const chunk of stream) {
        chunks.push(chunk);
        onChunk();
      }
    } catch (thrown) {
      error = thrown as WritError;
    }
    const finals = chunks.flatMap(({ chunk }) => (chunk.case === 'finished' ? [chunk.value] : []));
    if (finals.length > 1) throw new Error('More than one finished chunk.');
    return { chunks, finished: finals[0], error };
  }

  /** Returns the current balance of one level of a tab. */
  async level(level: number, agentInstance: string = AGENT) {
    const { tab } = await this.tab.getTab({ tab: { tenant: TENANT, runId: RUN, agentInstance } });
    return given(tab?.levels.find((balance) => balance.level === level));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#others, this.#meter].map((meter) => meter?.stop()));
    await this.supervisor.close();
    await this.worker.close();
    await this.spawnBudget.close();
    await this.simulator.close();
    await this.#bus.close();
    await rm(this.#dir, { recursive: true, force: true });
  }

  #aliases(): string[] {
    return ['extra', ...Object.keys(this.#options.scripts ?? { hello: [] })];
  }

  #catalog(): string {
    const { models, scripts = { hello: [] }, settings, tenants } = this.#options;
    return modelsYaml({ models, scripts: Object.keys(scripts), settings, tenants });
  }
}

export function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('The value is undefined.');
  return value;
}
