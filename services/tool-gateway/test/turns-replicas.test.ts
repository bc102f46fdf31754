import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSigner, type Signer } from '@writ/identity';
import { isWritError, systemClock } from '@writ/kernel';
import type { StoreLocation } from '@writ/store';
import { isPostgresAvailable } from '@writ/testing/postgres';
import { type ReplicaSet, runSchedules, type Schedule, schedulesOf } from '@writ/testing/schedules';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { type ExecutedCall, executeCall } from '../src/app/calls/execute-call.ts';
import type { ToolInvocation } from '../src/sources/source.ts';
import type { GatewayStore } from '../src/store/gateway-store.ts';
import { type CallReplica, openCallReplica, presentedCall } from './call-replica.ts';

const RUNS = ['run-1', 'run-2', 'run-3'];
const TOOLS = ['pay', 'charge'];
/** Limit of calls per run, below the number of calls that most runs attempt. */
const MAX_TOOL_CALLS = 6;
/** Timeout of all schedules on a busy machine, ms; the other replicas declare a killed replica dead after 3 s. */
const TIMEOUT_MS = 300_000 + schedulesOf(0.1) * 5_000;

/** Makes the database reject a second attempt at a destructive call and a call above max_tool_calls (TG-1, TG-2). */
async function guard({ dialect, transaction }: Pick<GatewayStore, 'dialect' | 'transaction'>) {
  const aboveLimit = `(select count(*) from calls where tenant = new.tenant and run_id = new.run_id
    and state not in ('refused', 'burnt')) > ${MAX_TOOL_CALLS}`;
  const repeated = `new.side_effect = 'destructive' and new.attempts > 1`;
  await transaction(async (trx) => {
    if (dialect === 'sqlite') {
      for (const [event, when] of [
        ['insert', aboveLimit],
        ['update', repeated],
      ]) {
        const text = `create trigger guard_${event} after ${event} on calls when ${when}
          begin select raise(abort, 'a call too many'); end`;
        await sql.raw(text).execute(trx);
      }
      return;
    }
    const body = `begin
      if ${repeated} then raise exception 'second attempt at %', new.call_id; end if;
      if ${aboveLimit} then raise exception 'max_tool_calls of % exceeded', new.run_id; end if;
      return null; end`;
    await sql`create function guard_calls() returns trigger language plpgsql as ${sql.lit(body)}`.execute(
      trx,
    );
    await sql`create trigger guard_calls after insert or update on calls
      for each row execute function guard_calls()`.execute(trx);
  });
}

/** Records every execution of a tool, by tenant. */
class World {
  readonly #executions = new Map<string, ToolInvocation[]>();

  readonly run = (invocation: ToolInvocation): void => {
    this.of(invocation.tenant).push(invocation);
  };

  /** Returns the executions for a tenant, in order. */
  of(tenant: string): ToolInvocation[] {
    const executions = this.#executions.get(tenant) ?? [];
    this.#executions.set(tenant, executions);
    return executions;
  }
}

interface Call {
  readonly runId: string;
  readonly callId: string;
  readonly tool: string;
}

/** The calls of one schedule; each schedule uses a separate tenant. */
class Calls {
  readonly #gateways: ReplicaSet<CallReplica>;
  readonly #tenant: string;
  readonly #executions: readonly ToolInvocation[];
  readonly #calls: Call[] = [];
  readonly #faultsBefore: number;
  /** Probability of a halt in each step; 0 in half of the schedules, so that no call in them is cancelled. */
  readonly #haltChance: number;

  constructor({ seed, replicas }: Schedule<CallReplica>, world: World) {
    this.#gateways = replicas;
    this.#faultsBefore = replicas.faults;
    this.#haltChance = seed % 2 === 0 ? 0 : 0.06;
    this.#tenant = `acme-${seed}`;
    this.#executions = world.of(this.#tenant);
  }

  async prepare(): Promise<void> {
    // Calls need no preparation.
  }

  async step(random: () => number, name: string): Promise<void> {
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const call = { runId: pick(RUNS), callId: name, tool: pick(TOOLS) };
    if (random() < this.#haltChance) {
      await this.#halt(random, name);
      return;
    }
    this.#calls.push(call);
    // A worker repeats a lost request; this test sends the repeat concurrently, to any replica.
    const outcomes = [this.#outcome(random, call), this.#outcome(random, call)];
    const [first, second] = await Promise.all(outcomes);
    if (first === 'HALTED' || second === 'HALTED') return;
    expect(second).toBe(first);
  }

  /**
   * Checks that every repeat of a call returns its first outcome, that no destructive call was executed twice, and that
   * no refused call was executed.
   */
  async check(): Promise<void> {
    // Without a fault or a halt, no outcome is unknown, and every call that is not refused is executed exactly once.
    const isUndisturbed = this.#haltChance === 0 && this.#gateways.faults === this.#faultsBefore;
    for (const call of this.#calls) {
      const receipt = await this.#outcome(() => 0, call);
      expect(receipt).not.toBe('HALTED');
      const executions = this.#executionsOf(call).length;
      expect(await this.#outcome(() => 0.99, call)).toBe(receipt);
      expect(this.#executionsOf(call).length).toBe(executions);
    }
    for (const call of this.#calls) {
      const executions = this.#executionsOf(call);
      if (call.tool === 'pay') expect(executions.length).toBeLessThanOrEqual(1);
      expect(new Set(executions.map(({ idempotencyKey }) => idempotencyKey)).size).toBeLessThan(2);
      const { row } = await this.#execute(() => 0, call);
      if (row.state === 'ok') expect(executions.length).toBeGreaterThan(0);
      if (row.state === 'refused') expect(executions.length).toBe(0);
      else if (isUndisturbed) expect([row.state, executions.length]).toEqual(['ok', 1]);
    }
  }

  #executionsOf({ runId, callId }: Call): ToolInvocation[] {
    return this.#executions.filter((each) => each.runId === runId && each.callId === callId);
  }

  async #execute(random: () => number, { runId, callId, tool }: Call): Promise<ExecutedCall> {
    const run = { tenant: this.#tenant, runId };
    const presented = presentedCall(run, callId, { tool, maxToolCalls: MAX_TOOL_CALLS });
    return await this.#gateways.request(random, ({ context }) =>
      executeCall(context, presented, new AbortController().signal),
    );
  }

  /** Executes a call and returns its receipt, or `HALTED`. */
  async #outcome(random: () => number, call: Call): Promise<string> {
    try {
      return (await this.#execute(random, call)).row.receipt ?? '';
    } catch (error) {
      if (!isWritError(error)) throw error;
      expect(error.reason).toBe('HALTED');
      return error.reason;
    }
  }

  /** Halts the tenant and checks that no tool starts after the response until the halt is lifted (SV-9). */
  async #halt(random: () => number, orderId: string): Promise<void> {
    const scope = { kind: { case: 'tenant', value: this.#tenant } };
    const order = { orderId, scope, cause: 1, reason: 'Stop.', orderedBy: 'mia' };
    const freeze = (replica: CallReplica) => replica.freezes.freeze({ order: order as never });
    await this.#gateways.request(random, freeze);
    const started = () =>
      this.#executions.map(({ runId, callId, tool }) => `${runId}/${callId} ${tool}`);
    const before = started();
    const calls = Array.from({ length: 3 }, (_, n) => {
      // Uses a new run, because a call above max_tool_calls is refused before freezes are read.
      const call = { runId: `halted-${orderId}`, callId: `${orderId}-${n}`, tool: 'pay' };
      return this.#outcome(random, call);
    });
    for (const outcome of await Promise.all(calls)) expect(outcome).toBe('HALTED');
    expect(started()).toEqual(before);
    await this.#gateways.request(random, ({ freezes }) => freezes.unfreeze({ orderId }));
  }
}

async function run(
  dialect: 'sqlite' | 'postgres',
  size: { maxReplicas: number; schedules: number },
) {
  const keyDir = await mkdtemp(join(tmpdir(), 'writ-keys-'));
  const signer: Signer = await openSigner({ service: 'tool-gateway', keyDir, clock: systemClock });
  const world = new World();
  const service = {
    open: (location: StoreLocation, isKilled: () => boolean) =>
      openCallReplica(location, signer, { run: world.run, isKilled }),
    guard: ({ store }: CallReplica) =>
      guard({ dialect: store.dialect, transaction: (...work) => store.transaction(...work) }),
    scenario: (schedule: Schedule<CallReplica>) => new Calls(schedule, world),
  };
  try {
    await runSchedules({ service, dialect, clients: 5, steps: 6, ...size });
  } finally {
    await rm(keyDir, { recursive: true, force: true });
  }
}

it(
  'executes each call at most once and nothing after a halt in random schedules with kills on SQLite (TG-1, TG-2, SV-9)',
  async () => {
    await run('sqlite', { maxReplicas: 1, schedules: schedulesOf(0.1) });
  },
  TIMEOUT_MS,
);

describe.runIf(isPostgresAvailable())('gateways on one PostgreSQL schema', () => {
  it(
    'execute each call at most once and nothing after a halt, with kills and lost sessions (TG-1, TG-2, SV-9, SYS-5)',
    async () => {
      await run('postgres', { maxReplicas: 4, schedules: schedulesOf(0.1) });
    },
    TIMEOUT_MS,
  );
});
