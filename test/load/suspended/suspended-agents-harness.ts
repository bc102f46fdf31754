import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { AGENT_WORKER_DEFAULTS } from '@writ/agent-worker';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import {
  AgentState,
  AgentWorkerService,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import {
  createVerifier,
  internalGate,
  openSigner,
  type ServiceName,
  trustSigners,
} from '@writ/identity';
import { systemClock } from '@writ/kernel';
import type { ClosableRpcClient } from '@writ/rpc';
import { type KeyPeer, startKeyPeer } from '@writ/testing';
import { AGENT, deliveryRequest, TENANT } from '../../../services/agent-worker/test/delivery.ts';
import { FakeGateway } from '../../../services/agent-worker/test/fake-gateway.ts';
import { FakeMeter } from '../../../services/agent-worker/test/fake-meter.ts';
import { FakeSlots } from '../../../services/agent-worker/test/fake-slots.ts';
import { FakeSupervisor } from '../../../services/agent-worker/test/fake-supervisor.ts';
import { FaultSwitches } from '../../../services/agent-worker/test/fault-switches.ts';
import { COMPILE_CACHE } from '../program.ts';

const CORRELATION = 'question-1';
/** Agent tokens that outlive the test. */
const TOKEN_MS = 3_600_000;

/** A worker process with suspended agents that wait for a human, and fake peers. */
export class SuspendedAgentsHarness {
  readonly slots: FakeSlots;
  readonly #folder: string;
  readonly #supervisor: FakeSupervisor;
  readonly #peers: KeyPeer[] = [];
  readonly #onWake = new Map<string, () => void>();
  #child: ChildProcess | undefined;
  #client: ClosableRpcClient<typeof AgentWorkerService> | undefined;

  private constructor(folder: string) {
    const faults = new FaultSwitches();
    this.#folder = folder;
    this.#supervisor = new FakeSupervisor(faults);
    this.slots = new FakeSlots(faults);
  }

  /** Starts the fake peers; {@link startWorker} starts the worker. */
  static async start(): Promise<SuspendedAgentsHarness> {
    const harness = new SuspendedAgentsHarness(await mkdtemp(join(tmpdir(), 'writ-suspended-')));
    await harness.#startPeers();
    return harness;
  }

  /** Starts a worker on the stored data. */
  async startWorker(): Promise<void> {
    const config = {
      ...AGENT_WORKER_DEFAULTS,
      port: 0,
      dataDir: this.#folder,
      store: { dialect: 'sqlite', file: this.#database },
    };
    const addresses = Object.fromEntries(
      this.#peers.map(({ service, address }) => [service, address]),
    );
    const program = fileURLToPath(new URL('worker-program.ts', import.meta.url));
    const child = fork(program, [JSON.stringify({ config, addresses })], {
      execPath: process.execPath,
      execArgv: ['--expose-gc'],
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE },
    });
    this.#child = child;
    const [address] = (await once(child, 'message')) as [string];
    this.#client = this.#peer('supervisor').client(AgentWorkerService, {
      audience: 'agent-worker',
      address,
    });
  }

  /** Stops the worker. */
  async stopWorker(): Promise<void> {
    const child = this.#child;
    this.#client?.close();
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  }

  /** Resident memory of the worker, bytes. */
  async rss(): Promise<number> {
    const child = this.#child;
    if (child === undefined) throw new Error('The worker is not running.');
    const answered = once(child, 'message');
    child.send('rss');
    const [rss] = (await answered) as [number];
    return rss;
  }

  /** Delivers an agent; resolves when it is suspended. */
  async suspend(runId: string): Promise<void> {
    const manifest = { kind: AgentKind.USER_PROXY };
    await this.#worker.deliver({
      ...deliveryRequest({ runId, manifest, correlationId: CORRELATION }),
      credentials: await this.#credentials(runId),
    });
    for (;;) {
      const { agents } = await this.#worker.describeRun({ tenant: TENANT, runId });
      if (agents[0]?.state === AgentState.SUSPENDED) return;
    }
  }

  /** Signals an agent; resolves with the milliseconds until its answer reached the supervisor. */
  async wake(runId: string): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onWake.set(runId, resolve);
    const at = performance.now();
    await this.#worker.signal({
      requestId: `wake-${runId}`,
      tenant: TENANT,
      runId,
      agentInstance: AGENT.instance,
      name: `human_reply:${CORRELATION}`,
      payloadJson: JSON.stringify({ text: 'Yes.' }),
    });
    await promise;
    return performance.now() - at;
  }

  /**
   * Copies the rows of a suspended agent to `copies` more runs `copy-<n>`; the runs with the numbers in `awaken` get
   * valid tokens. The worker must not be running.
   */
  async copy(runId: string, copies: number, awaken: readonly number[]): Promise<void> {
    const database = new DatabaseSync(this.#database);
    try {
      database.exec('BEGIN');
      for (const table of ['agents', 'inbox', 'journal']) {
        const columns = database
          .prepare(
            `SELECT name FROM pragma_table_info('${table}') WHERE name != 'position' OR ? = 'journal'`,
          )
          .all(table)
          .map(({ name }) => String(name));
        const values = columns.map((name) =>
          name === 'run_id'
            ? "'copy-' || n"
            : name === 'supervision'
              ? `replace(supervision, '${runId}', 'copy-' || n)`
              : name,
        );
        database
          .prepare(
            `WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
             INSERT INTO ${table} (${columns.join(', ')}) SELECT ${values.join(', ')} FROM numbers, ${table} WHERE run_id = ?`,
          )
          .run(copies, runId);
      }
      const save = database.prepare(
        'UPDATE agents SET credentials = ? WHERE tenant = ? AND run_id = ?',
      );
      for (const n of awaken)
        save.run(await this.#credentialsText(`copy-${n}`), TENANT, `copy-${n}`);
      database.exec('COMMIT');
    } finally {
      database.close();
    }
  }

  /** Stops every process and removes the data. */
  async close(): Promise<void> {
    await this.stopWorker();
    await Promise.all(this.#peers.map((peer) => peer.close()));
    await rm(this.#folder, { recursive: true, force: true });
  }

  get #database(): string {
    return join(this.#folder, 'agent-worker.db');
  }

  get #worker(): ClosableRpcClient<typeof AgentWorkerService> {
    if (this.#client === undefined) throw new Error('The worker is not running.');
    return this.#client;
  }

  async #credentials(runId: string) {
    const agent = { tenant: TENANT, runId, agent: AGENT };
    return await this.#peer('supervisor').agentCredentials(agent, TOKEN_MS);
  }

  /** Tokens in the format that the worker stores. */
  async #credentialsText(runId: string): Promise<string> {
    const tokens = await this.#credentials(runId);
    return JSON.stringify({
      supervisor: tokens.supervisorToken,
      spawnBudget: tokens.spawnBudgetToken,
      executionMeter: tokens.executionMeterToken,
      toolGateway: tokens.toolGatewayToken,
      expiresAt: systemClock.now().getTime() + TOKEN_MS,
    });
  }

  #peer(service: ServiceName): KeyPeer {
    const peer = this.#peers.find((candidate) => candidate.service === service);
    if (peer === undefined) throw new Error(`The harness has no peer ${service}.`);
    return peer;
  }

  async #startPeers(): Promise<void> {
    const keyDir = join(this.#folder, 'keys');
    const open = (service: ServiceName) => openSigner({ service, keyDir, clock: systemClock });
    const spawnBudget = await open('spawn-budget');
    const trust = trustSigners(await open('agent-worker'), await open('supervisor'), spawnBudget);
    const verifier = createVerifier({ trust, clock: systemClock });
    this.slots.equip(spawnBudget, verifier);
    this.#supervisor.rule = (rawText) => {
      const { answer } = JSON.parse(rawText) as { readonly answer: string };
      return { verdict: 'approve', reason: 'fine', action: { kind: 'final', answer } };
    };
    // A run ends when its final answer is approved.
    const { endings } = this.#supervisor;
    const set = endings.set.bind(endings);
    endings.set = (runId, ending) => {
      this.#onWake.get(runId)?.();
      return set(runId, ending);
    };
    const faults = new FaultSwitches();
    const fakes = {
      supervisor: this.#supervisor,
      'spawn-budget': this.slots,
      'execution-meter': new FakeMeter(faults, () => '{}'),
      'tool-gateway': new FakeGateway(faults),
    } as const;
    for (const service of Object.keys(fakes) as (keyof typeof fakes)[]) {
      const gate = internalGate({ service, verifier, enforceSlotGrants: true });
      const routes = fakes[service].routes();
      this.#peers.push(await startKeyPeer(service, { keyDir, routes, gate }));
    }
  }
}
