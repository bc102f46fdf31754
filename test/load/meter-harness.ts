import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fromBinary } from '@bufbuild/protobuf';
import { type HookEvent, HookEventSchema } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { BudgetLevel, LevelBalance } from '@writ/contracts/writ/meter/v1/tab_pb';
import { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { derivedId, Priority } from '@writ/kernel';
import type { ClosableRpcClient } from '@writ/rpc';
import { createModelSimulator, type ModelSimulator, type Script } from '@writ/simulator';
import { type KeyPeer, startKeyPeer } from '@writ/testing';
import { type Program, SERVICE_MAINS, startProgram } from './program.ts';

export const TENANT = 'acme';

/** The exact cost of one call of the model `tenth`: $0.10. */
export const TENTH = 100_000_000n;

/** An agent of a run. */
export interface Agent {
  readonly runId: string;
  readonly instance: string;
}

const SCRIPTS: readonly Script[] = [
  reply('tenth', { text: 'Ten cents.', delay_ms: 8 }),
  reply('slot', { text: 'Next.', delay_ms: 2 }),
  // The stream lasts minutes; tests abort it.
  reply('endless', { text: 'and on '.repeat(2_000), chunk_size: 4, chunk_delay_ms: 20 }),
  reply('quick', { text: 'Quick.', delay_ms: 10 }),
];

/** 100 output tokens at $1,000 per million tokens cost $0.10; input tokens are free. */
const MODELS = `
templates:
  sim:
    base_url: "\${SIM_URL}"
    api_key_env: SIM_KEY
    max_output_tokens: 100
    max_retries: 0
    prices: { input_per_million_usd: "0", output_per_million_usd: "1000" }
models:
  tenth: { template: sim, model: "sim:tenth", max_in_flight: 16 }
  slot: { template: sim, model: "sim:slot", max_in_flight: 1 }
  endless: { template: sim, model: "sim:endless", max_output_tokens: 100000 }
  quick: { template: sim, model: "sim:quick" }
`;

/** Longer than any test. */
const LONG_MS = 3_600_000;

/** The credentials that a worker sends with every call. */
export interface Credentials {
  readonly agentToken: string;
  readonly slotGrant: string;
  readonly epoch: bigint;
}

type Peers = Readonly<Record<'supervisor' | 'worker' | 'spawnBudget', KeyPeer>>;

interface Running {
  readonly program: Program;
  readonly tabs: ClosableRpcClient<typeof ExecutionMeterService>;
  readonly models: ClosableRpcClient<typeof ModelService>;
}

/** An execution meter process between a provider, a supervisor and workers. */
export class MeterHarness {
  readonly simulator: ModelSimulator;
  readonly supervisor: KeyPeer;
  readonly worker: KeyPeer;
  readonly #spawnBudget: KeyPeer;
  readonly #dir: string;
  #running: Promise<Running>;

  static async start(): Promise<MeterHarness> {
    const dir = await mkdtemp(join(tmpdir(), 'writ-load-'));
    await writeFile(join(dir, 'models.yaml'), MODELS);
    const [simulator, supervisor, worker, spawnBudget] = await Promise.all([
      createModelSimulator({ scripts: SCRIPTS }),
      startKeyPeer('supervisor'),
      startKeyPeer('agent-worker'),
      startKeyPeer('spawn-budget'),
    ]);
    const harness = new MeterHarness(dir, simulator, { supervisor, worker, spawnBudget });
    await harness.running();
    return harness;
  }

  private constructor(
    dir: string,
    simulator: ModelSimulator,
    { supervisor, worker, spawnBudget }: Peers,
  ) {
    this.#dir = dir;
    this.simulator = simulator;
    this.supervisor = supervisor;
    this.worker = worker;
    this.#spawnBudget = spawnBudget;
    this.#running = this.#boot();
  }

  /** Returns the clients of the running process; waits while the process restarts. */
  running(): Promise<Running> {
    return this.#running;
  }

  /** kill -9 and restart on the same data. */
  async crash(): Promise<void> {
    const { program } = await this.#running;
    await program.kill();
    this.#running = this.#boot();
    await this.#running;
  }

  /** Opens an agent's tab for all models. */
  async openTab({ runId, instance }: Agent, maxCostNanoUsd?: bigint): Promise<void> {
    const { tabs } = await this.running();
    await tabs.openTab({
      requestId: `open-${instance}`,
      tenant: TENANT,
      runId,
      sessionId: 'session-1',
      agent: { name: 'payer', instance },
      budget: maxCostNanoUsd === undefined ? {} : { maxCostNanoUsd },
      models: SCRIPTS.map(({ name }) => name),
    });
  }

  /** Issues an agent token and a slot grant. */
  async credentials(
    { runId, instance }: Agent,
    { priority = Priority.NORMAL, epoch = 1n }: { priority?: Priority; epoch?: bigint } = {},
  ): Promise<Credentials> {
    const { executionMeterToken: agentToken } = await this.supervisor.agentCredentials(
      {
        tenant: TENANT,
        runId,
        agent: { name: 'payer', instance },
        models: SCRIPTS.map(({ name }) => name),
        priority,
      },
      LONG_MS,
    );
    const holder = { tenant: TENANT, runId, agentInstance: instance, priority, epoch };
    return { agentToken, slotGrant: await this.#spawnBudget.slotGrant(holder, LONG_MS), epoch };
  }

  /** Returns the current balance of one level of an agent's tab. */
  async level({ runId, instance }: Agent, level: BudgetLevel): Promise<LevelBalance> {
    const { tabs } = await this.running();
    const { tab } = await tabs.getTab({
      tab: { tenant: TENANT, runId, agentInstance: instance },
    });
    const found = tab?.levels.find((balance) => balance.level === level);
    if (found === undefined) throw new Error('The tab does not have this level.');
    return found;
  }

  /** The model events of a run in commit order; the outbox keeps them because no consumer is connected. */
  events(runId: string): HookEvent[] {
    const file = new DatabaseSync(join(this.#dir, 'execution-meter.db'), { readOnly: true });
    try {
      const rows = file.prepare('select payload from outbox order by position').all();
      return rows
        .map(({ payload }) => fromBinary(HookEventSchema, payload as Uint8Array))
        .filter((event) => event.runId === runId);
    } finally {
      file.close();
    }
  }

  /** The request id that the provider receives for an attempt of a call. */
  requestId({ runId, instance }: Agent, callId: string, attempt = 1): string {
    return derivedId('call', TENANT, runId, instance, callId, String(attempt));
  }

  async close(): Promise<void> {
    const { program } = await this.#running;
    await program.kill();
    const peers = [this.supervisor, this.worker, this.#spawnBudget];
    await Promise.all([...peers, this.simulator].map((part) => part.close()));
    await rm(this.#dir, { recursive: true, force: true });
  }

  async #boot(): Promise<Running> {
    const program = await startProgram(SERVICE_MAINS['execution-meter'], {
      WRIT_DATA: this.#dir,
      WRIT_MODELS_FILE: join(this.#dir, 'models.yaml'),
      WRIT_EXECUTION_METER_PORT: '0',
      WRIT_SUPERVISOR_ADDRESS: this.supervisor.address,
      WRIT_AGENT_WORKER_ADDRESS: this.worker.address,
      WRIT_SPAWN_BUDGET_ADDRESS: this.#spawnBudget.address,
      WRIT_LOG_LEVEL: 'silent',
      SIM_URL: this.simulator.url,
      SIM_KEY: 'simulated',
    });
    const to = { audience: 'execution-meter', address: program.address } as const;
    return {
      program,
      tabs: this.supervisor.client(ExecutionMeterService, to),
      models: this.worker.client(ModelService, to),
    };
  }
}

function reply(name: string, answer: object): Script {
  const usage = { prompt_tokens: 10, completion_tokens: 100 };
  return { name, entries: [{ reply: { usage, ...answer } }] };
}
