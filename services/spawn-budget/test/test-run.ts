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

/** What an opening may say beside the caps. */
export interface OpenOptions {
  readonly priority?: Priority;
  readonly deadline?: Date;
  readonly requestId?: string;
}

/** What an acquire may say beside who and how important. */
export interface AcquireOptions {
  readonly requestId?: string;
  readonly depth?: number;
  /** Default: the supervisor's own. */
  readonly client?: SpawnClient;
}

/** One run of its own, its root named `root`, as the supervisor and a worker see it. */
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

  /** Who the run is, as requests name it. */
  get id(): { tenant: string; runId: string } {
    return { tenant: this.tenant, runId: this.runId };
  }

  /** Opens the pool; answers the root's slot. */
  async open(budget: Partial<SpawnBudget> = {}, options: OpenOptions = {}) {
    const { priority = Priority.NORMAL, deadline, requestId = 'open' } = options;
    const { slot } = await this.#world.supervisor.openPool({
      ...this.id,
      requestId,
      root: this.root,
      priority: contractPriority(priority),
      budget,
      ...(deadline && { deadline: timestampFromDate(deadline) }),
    });
    return slot;
  }

  /** Asks for a slot for the child `instance`. */
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
    // For a thousand of them at once on a busy machine.
    return (client ?? this.#world.supervisor).acquire(request, { timeoutMs: 60_000 });
  }

  /** Ends the child `instance`. */
  release(instance: string, requestId = `release-${instance}`) {
    return this.#world.supervisor.release({ ...this.id, requestId, agentInstance: instance });
  }

  /** Gives an agent another weight. */
  reprioritize(instance: string, priority: Priority, requestId = `weigh-${instance}-${priority}`) {
    return this.#world.supervisor.reprioritize({
      ...this.id,
      requestId,
      agentInstance: instance,
      priority: contractPriority(priority),
    });
  }

  /** One agent of a renewal. */
  async renewal(instance: string, intent: RenewIntent = RenewIntent.RUN, epoch = 1n) {
    const agent = instance === 'root' ? this.root : { name: 'child', instance };
    const { spawnBudgetToken } = await this.#world
      .peer('supervisor')
      .agentCredentials({ ...this.id, agent });
    return { agentToken: spawnBudgetToken, epoch, intent };
  }

  /** Renews one agent as its worker does; answers its state's name, or why it was refused. */
  async renew(instance: string, intent?: RenewIntent, epoch?: bigint): Promise<string> {
    const renewal = await this.renewal(instance, intent, epoch);
    const { agents } = await this.#world.worker.renew({ agents: [renewal] });
    const [answer] = agents;
    return answer?.refusal || stateOf(answer?.slot);
  }

  close() {
    return this.#world.supervisor.closePool({ ...this.id, requestId: 'close' });
  }

  /** The pool, its agents by name. */
  async pool(client: SpawnClient = this.#world.supervisor) {
    const { pool } = await client.getPool(this.id);
    if (pool === undefined) throw new Error('The answer has no pool.');
    const names = (slots: readonly Slot[]) => slots.map(({ agent }) => agent?.instance);
    const { holders, paused, waiting } = pool;
    return { ...pool, holders: names(holders), paused: names(paused), waiting: names(waiting) };
  }
}

/** The name of a slot's state. */
export function stateOf(slot: Pick<Slot, 'state'> | undefined): string {
  return (slot && STATES.get(slot.state)) ?? 'NONE';
}
