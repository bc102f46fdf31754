import { fromBinary } from '@bufbuild/protobuf';
import { HookEventSchema } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { isWritError, Priority, systemClock } from '@writ/kernel';
import { createOutboxRelay, type OutboxRelay, type StoreLocation } from '@writ/store';
import { isPostgresAvailable } from '@writ/testing/postgres';
import { type ReplicaSet, runSchedules, type Schedule, schedulesOf } from '@writ/testing/schedules';
import { type Kysely, sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import type { PoolRepository } from '../src/app/pool/pool-repository.ts';
import { renewSlots } from '../src/app/slot/renew-slots.ts';
import type { SpawnDatabase } from '../src/store/schema.ts';
import type { SpawnStore } from '../src/store/spawn-store.ts';
import {
  acquireChild,
  openPoolOf,
  openPoolReplica,
  type PoolReplica,
  ROOT,
  releaseChild,
} from './pool-replica.ts';

const RUNS = ['run-1', 'run-2', 'run-3'];
const MAX_AGENTS = 4;
const PRIORITIES = [Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.CRITICAL];
/** Timeout of all schedules together on a busy machine, ms. */
const TIMEOUT_MS = 300_000 + schedulesOf(0.2) * 5_000;

interface Run {
  readonly tenant: string;
  readonly runId: string;
}

const HOLDERS = `(select count(*) from members where tenant = new.tenant and run_id = new.run_id
  and state in ('active', 'suspended'))`;

/** Makes the database reject each commit after which a run has more slot holders than its cap (SB-6). */
async function rejectExceededCaps(store: SpawnStore): Promise<void> {
  const body = `begin
    if ${HOLDERS} > ${MAX_AGENTS} then raise exception 'cap of % exceeded', new.run_id; end if;
    return null; end`;
  await store.transaction(async (trx) => {
    if (store.dialect === 'sqlite') {
      await rejectOnSqlite(trx);
      return;
    }
    await sql`create function within_cap() returns trigger language plpgsql as ${sql.lit(body)}`.execute(
      trx,
    );
    await sql`create constraint trigger within_cap after insert or update on members
      deferrable initially deferred for each row execute function within_cap()`.execute(trx);
  });
}

/**
 * SQLite has no deferred triggers, so each update of a pool, which precedes the update of its members, checks the
 * result of the previous transaction.
 */
async function rejectOnSqlite(trx: Kysely<SpawnDatabase>): Promise<void> {
  const text = `create trigger within_cap before update on pools when ${HOLDERS} > ${MAX_AGENTS}
    begin select raise(abort, 'a cap is exceeded'); end`;
  await sql.raw(text).execute(trx);
}

/** A message that was published. */
interface Published {
  readonly runId: string;
  readonly sequence: bigint;
}

/** The messages of each tenant by their ids, in the order in which they were first published. */
type Messages = Map<string, Map<string, Published>>;

/** Opens a replica whose relay publishes to `messages`; a killed process publishes nothing. */
async function openReplica(
  messages: Messages,
  location: StoreLocation,
  isKilled: () => boolean,
): Promise<Replica> {
  const replica: PoolReplica = await openPoolReplica(location, () => relay.wake());
  const relay: OutboxRelay = createOutboxRelay({
    store: replica.store,
    publish: async ({ eventId, payload }) => {
      if (isKilled()) throw new Error('The process was killed.');
      const { tenant, runId, slotSequence: sequence } = fromBinary(HookEventSchema, payload);
      const ofTenant = messages.get(tenant) ?? new Map<string, Published>();
      // A message is published again if the relay dies before it marks the message as published.
      if (!ofTenant.has(eventId)) ofTenant.set(eventId, { runId, sequence });
      messages.set(tenant, ofTenant);
    },
    onError: () => undefined,
    clock: systemClock,
    markIntervalMs: 200,
    pollMs: 20,
    retryMaxMs: 50,
  });
  relay.start();
  return { ...replica, messages, stop: () => relay.stop() };
}

interface Replica extends PoolReplica {
  readonly messages: Messages;
  stop(): Promise<void>;
}

/** Runs one schedule of acquires, releases and renewals in a tenant that only this schedule uses. */
class Headcount {
  readonly #replicas: ReplicaSet<Replica>;
  readonly #tenant: string;
  readonly #runs: readonly Run[];
  readonly #children = new Map<Run, Set<string>>();

  constructor({ seed, replicas }: Schedule<Replica>) {
    this.#replicas = replicas;
    this.#tenant = `acme-${seed}`;
    this.#runs = RUNS.map((runId) => ({ tenant: this.#tenant, runId }));
  }

  async prepare(): Promise<void> {
    for (const run of this.#runs) {
      this.#children.set(run, new Set());
      await this.#request(
        () => 0,
        ({ repository }) => openPoolOf(repository, run, MAX_AGENTS),
      );
    }
  }

  async step(random: () => number, name: string): Promise<void> {
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const run = pick(this.#runs);
    const priority = pick(PRIORITIES);
    const chance = random();
    this.#children.get(run)?.add(name);
    await this.#request(random, ({ repository }) => acquireChild(repository, run, name, priority));
    if (chance > 0.9) await this.#request(random, ({ repository }) => this.#renewRoots(repository));
    if (chance > 0.3)
      await this.#request(random, ({ repository }) => releaseChild(repository, run, name));
  }

  /** Checks that no slot is lost: after all releases, each pool grants exactly as many slots as its cap allows. */
  async check(): Promise<void> {
    for (const run of this.#runs) {
      for (const name of this.#children.get(run) ?? []) {
        await this.#request(
          () => 0,
          ({ repository }) => releaseChild(repository, run, name),
        );
      }
      for (let n = 1; n < MAX_AGENTS; n += 1) {
        const acquire = ({ repository }: Replica) => acquireChild(repository, run, `last-${n}`);
        expect(await this.#request(() => n / MAX_AGENTS, acquire)).toBe('done');
      }
      const acquire = ({ repository }: Replica) => acquireChild(repository, run, 'too-many');
      expect(await this.#request(() => 0, acquire)).toBe('BUDGET_EXHAUSTED');
    }
    await this.#checkPublished();
  }

  /** Checks that every event was published, and the events of each run in the order of their changes (HK-1, HK-2). */
  async #checkPublished(): Promise<void> {
    const [first] = await this.#replicas.all();
    const published = () => first?.messages.get(this.#tenant) ?? new Map<string, Published>();
    const recorded = await this.#replicas.request(
      () => 0,
      ({ store }) =>
        store.db
          .selectFrom('outbox')
          .select('event_id')
          .where('subject', 'like', `%.${this.#tenant}.%`)
          .execute(),
    );
    const ids = recorded.map(({ event_id: id }) => id).toSorted();
    await expect.poll(() => [...published().keys()].toSorted()).toEqual(ids);
    for (const { runId } of this.#runs) {
      const sequences = [...published().values()].flatMap((each) =>
        each.runId === runId ? [each.sequence] : [],
      );
      expect(sequences).toEqual(sequences.toSorted((a, b) => Number(a - b)));
    }
  }

  /** Renews the roots of all runs in one transaction. */
  async #renewRoots(repository: PoolRepository): Promise<void> {
    const renewals = this.#runs.map((run) => ({
      agent: run as never,
      event: { type: 'renew', instance: ROOT.instance, epoch: 1n, intent: 'run' } as const,
    }));
    await renewSlots(repository, renewals);
  }

  /** Makes a request until its outcome is known; a repeat goes to any replica (SB-9). */
  async #request(
    random: () => number,
    request: (replica: Replica) => Promise<void>,
  ): Promise<string> {
    try {
      await this.#replicas.request(random, request);
      return 'done';
    } catch (error) {
      if (!isWritError(error)) throw error;
      expect(error.reason).toBe('BUDGET_EXHAUSTED');
      return error.reason;
    }
  }
}

async function run(
  dialect: 'sqlite' | 'postgres',
  size: { maxReplicas: number; schedules: number },
) {
  const messages: Messages = new Map();
  const service = {
    open: (location: StoreLocation, isKilled: () => boolean) =>
      openReplica(messages, location, isKilled),
    guard: ({ store }: Replica) => rejectExceededCaps(store),
    scenario: (schedule: Schedule<Replica>) => new Headcount(schedule),
  };
  await runSchedules({ service, dialect, clients: 6, steps: 8, ...size });
  expect([...messages.values()].reduce((sum, { size: count }) => sum + count, 0)).toBeGreaterThan(
    0,
  );
}

it(
  'enforces every cap, loses no slot and publishes events in order, in random schedules with kills on SQLite (SB-6, HK-1)',
  async () => {
    await run('sqlite', { maxReplicas: 1, schedules: schedulesOf(0.1) });
  },
  TIMEOUT_MS,
);

describe.runIf(isPostgresAvailable())('spawn-budgets on one PostgreSQL schema', () => {
  it(
    'enforce every cap, lose no slot and publish events in order, in random schedules with kills and lost sessions (SB-6, HK-1, SYS-5)',
    async () => {
      await run('postgres', { maxReplicas: 4, schedules: schedulesOf(0.15) });
    },
    TIMEOUT_MS,
  );
});
