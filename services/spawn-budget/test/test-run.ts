import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type Slot, SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { RenewIntent } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { contractPriority } from '@writ/identity';
import { Priority, type SpawnBudget } from '@writ/kernel';
import type { SpawnClient, World } from './world.ts';

const STATES = new Map<number, string>(
  Object.entries(SlotState).map(([name, state]) => [state, name]),
);
let runs = 0;

/** Options of an OpenPool call other than the caps. */
export interface OpenOptions {
  readonly priority?: Priority;
  readonly deadline?: Date;
  readonly requestId?: string;
}

/** Options of an Acquire call other than agent and priority. */
export interface AcquireOptions {
  readonly requestId?: string;
  readonly depth?: number;
  /** Default: the supervisor. */
  readonly client?: SpawnClient;
}

/** A run with a root named `root`, and the calls of its supervisor and worker. */
export class TestRun {
  readonly tenant: string;
  readonly runId: string;
  readonly root = { name: 'lead', instance: 'root' };
  readonly #world: World;

  constructor(world: World, tenant = 'acme') {
    runs += 1;
    this.#world = world;
    this.tenant = tenant;
    this.runId = `run-${runs}`;
  }

  /** The fields of a request that identify the run. */
  get id(): { tenant: string; runId: string } {
    return { tenant: this.tenant, runId: this.runId };
  }

  /** Opens the pool; returns the root's slot. */
  async open(budget: Partial<SpawnBudget> = {}, options: OpenOptions = {}) {
    const { priority = Priority.NORMAL, deadline, requestId = 'open' } = options;
    const { slot } = await this.#world.supervisor.openPool({
      ...this.id,
      sessionId: 'session-1',
      requestId,
      root: this.root,
      priority: contractPriority(priority),
      budget,
      ...(deadline && { deadline: timestampFromDate(deadline) }),
    });
    return slot;
  }

  /** Acquires a slot for the child `instance`. */
  acquire(
    instance: string,
    priority: Priority = Priority.NORMAL,
    { requestId = `acquire-${instance}`, depth = 1, client }: AcquireOptions = {},
  ) {
    const request = {
      ...this.id,
      requestId,
      agent: { name: 'child', instance },
      parent: this.root,
      depth,
      priority: contractPriority(priority),
    };
    // Long enough for a thousand concurrent calls on a slow machine.
    return (client ?? this.#world.supervisor).acquire(request, { timeoutMs: 60_000 });
  }

  /** Releases the child `instance`. */
  release(instance: string, requestId = `release-${instance}`) {
    return this.#world.supervisor.release({ ...this.id, requestId, agentInstance: instance });
  }

  /** Changes the priority of an agent. */
  reprioritize(
    instance: string,
    priority: Priority,
    requestId = `reprioritize-${instance}-${priority}`,
  ) {
    return this.#world.supervisor.reprioritize({
      ...this.id,
      requestId,
      agentInstance: instance,
      priority: contractPriority(priority),
    });
  }

  /** An entry of a renewal. */
  async renewal(
    instance: string,
    intent: RenewIntent = RenewIntent.RUN,
    epoch = 1n,
    waitingFor: readonly string[] = [],
  ) {
    const agent = instance === 'root' ? this.root : { name: 'child', instance };
    const { spawnBudgetToken } = await this.#world
      .peer('supervisor')
      .agentCredentials({ ...this.id, agent });
    return { agentToken: spawnBudgetToken, epoch, intent, waitingFor: [...waitingFor] };
  }

  /** Renews one agent as its worker; returns its state or the reason of the rejection. */
  async renew(instance: string, intent?: RenewIntent, epoch?: bigint): Promise<string> {
    const renewal = await this.renewal(instance, intent, epoch);
    const { agents } = await this.#world.worker.renew({ agents: [renewal] });
    const [answer] = agents;
    return answer?.refusal || stateOf(answer?.slot);
  }

  close() {
    return this.#world.supervisor.closePool({ ...this.id, requestId: 'close' });
  }

  /** The pool with the names of its agents. */
  async pool(client: SpawnClient = this.#world.supervisor) {
    const { pool } = await client.getPool(this.id);
    if (pool === undefined) throw new Error('The response has no pool.');
    const names = (slots: readonly Slot[]) => slots.map(({ agent }) => agent?.instance);
    const { holders, paused, waiting } = pool;
    return { ...pool, holders: names(holders), paused: names(paused), waiting: names(waiting) };
  }
}

/** The name of a slot's state. */
export function stateOf(slot: Pick<Slot, 'state'> | undefined): string {
  return (slot && STATES.get(slot.state)) ?? 'NONE';
}
