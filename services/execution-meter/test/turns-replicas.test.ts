import { createFreezeHandlers } from '@writ/freeze';
import { type AgentKey, isWritError, type Scope } from '@writ/kernel';
import type { StoreLocation } from '@writ/store';
import { endSessions, isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { seeded } from '@writ/testing/random';
import { sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import { release, reserve, settle } from '../src/app/tabs/reservations.ts';
import { setCaps } from '../src/app/tabs/set-caps.ts';
import type { MeterContext } from '../src/context.ts';
import { NO_USAGE } from '../src/domain/ledger/spending.ts';
import type { MeterStore } from '../src/store/meter-store.ts';
import { openTabOf, openTabReplica } from './tab-replica.ts';

const RUNS = ['run-1', 'run-2', 'run-3'];
const AGENT = 'root';
const TENANT_CAP = 180n;
const SESSION_CAP = 140n;
const RUN_CAP = 70n;
const HOLD = 20n;
const CLIENTS = 5;
const STEPS = 8;
const MAX_REPLICAS = 4;
/** CI runs this many; DEVELOPMENT.md says how to run more. */
const SCHEDULES = Number(process.env.WRIT_TEST_SCHEDULES ?? 1_000);
/** Liveness limit of all schedules on a busy machine, ms. */
const TIMEOUT_MS = 120_000 + SCHEDULES * 1_000;

const NO_CALLS = {
  callers: () => [],
  abort: () => undefined,
  settle: async () => undefined,
  list: () => [],
};

/** A meter without its listener. */
interface Replica {
  readonly location: StoreLocation;
  readonly context: MeterContext;
  readonly freezes: ReturnType<typeof createFreezeHandlers>;
}

async function startReplica(location: StoreLocation): Promise<Replica> {
  const context = await openTabReplica(location);
  const { store, clock, telemetry } = context;
  onTestFinished(() => store.close());
  const freezes = createFreezeHandlers({
    store,
    clock,
    log: telemetry.log,
    calls: NO_CALLS,
    callsInStore: async () => [],
    onRecord: async () => undefined,
  });
  return { location, context, freezes };
}

/** Makes the database reject each statement after which a level has more than its cap (EM-3). */
async function rejectExceededCaps(store: MeterStore): Promise<void> {
  if (store.dialect === 'sqlite') return await rejectExceededCapsOnSqlite(store);
  const body = `declare cap bigint; begin
    cap := coalesce(new.cap_tokens, (select cap_tokens from balances
      where id = 'caps:day:' || substr(split_part(new.id, '/', 1), 5) and new.id like 'day:%'));
    if new.used_tokens + new.reserved_tokens > cap then raise exception 'cap of % exceeded', new.id; end if;
    return null; end`;
  await store.transaction(async (trx) => {
    await sql`create function within_cap() returns trigger language plpgsql as ${sql.lit(body)}`.execute(
      trx,
    );
    await sql`create trigger within_cap after insert or update on balances
      for each row execute function within_cap()`.execute(trx);
  });
}

async function rejectExceededCapsOnSqlite(store: MeterStore): Promise<void> {
  const isExceeded = `new.used_tokens + new.reserved_tokens > coalesce(new.cap_tokens, (select cap_tokens
    from balances where id = 'caps:' || substr(new.id, 1, instr(new.id, '/') - 1)))`;
  await store.transaction(async (trx) => {
    for (const event of ['insert', 'update']) {
      const text = `create trigger within_cap_on_${event} after ${event} on balances when ${isExceeded}
        begin select raise(abort, 'a cap is exceeded'); end`;
      await sql.raw(text).execute(trx);
    }
  });
}

async function openTabs({ context }: Replica, tenants: readonly string[]): Promise<void> {
  for (const tenant of tenants) {
    await setCaps(
      context,
      { requestId: `caps-${tenant}`, requestDigest: 'caps' },
      {
        tenant,
        level: 'tenant_day',
        sessionId: '',
        runId: '',
        caps: { tokens: TENANT_CAP },
        setBy: 'mia',
      },
    );
    for (const runId of RUNS) {
      const owner = { tenant, runId, instance: AGENT, sessionId: 'session-1' };
      await openTabOf(context, owner, { run: RUN_CAP, session: SESSION_CAP });
    }
  }
}

/** Makes a request until its outcome is known, each time at another replica. */
async function untilKnown<T>(
  replicas: readonly Replica[],
  random: () => number,
  request: (replica: Replica) => Promise<T>,
): Promise<T | string> {
  for (;;) {
    const replica = replicas[Math.floor(random() * replicas.length)];
    if (replica === undefined) throw new Error('There is no replica.');
    try {
      return await request(replica);
    } catch (error) {
      if (!isWritError(error)) throw error;
      if (!error.reason.startsWith('STORE_')) return error.reason;
      // Sessions were ended; anything else would be a fault.
      expect(error.reason).toMatch(/^STORE_(UNREACHABLE|COMMIT_FAILED|COMMIT_UNKNOWN)$/);
    }
  }
}

async function entriesOf({ context }: Replica, tenant: string): Promise<string[]> {
  const rows = await context.store.db
    .selectFrom('entries')
    .select(['run_id', 'call_id'])
    .where('tenant', '=', tenant)
    .orderBy('run_id')
    .orderBy('call_id')
    .execute();
  return rows.map(({ run_id, call_id }) => `${run_id}/${call_id}`);
}

interface Schedule {
  readonly replicas: readonly Replica[];
  readonly tenants: readonly string[];
  readonly seed: number;
}

/** One client: reserves and settles in random runs, halts a tenant or ends sessions now and then. */
async function runClient({ replicas, tenants, seed }: Schedule, client: number): Promise<void> {
  const random = seeded(seed * CLIENTS + client);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  for (let step = 0; step < STEPS; step += 1) {
    const key = { tenant: pick(tenants), runId: pick(RUNS), instance: AGENT };
    const callId = `s${seed}-c${client}-${step}`;
    const chance = random();
    if (chance < 0.04) await halt(replicas, random, key, callId);
    else if (client === 0 && chance < 0.05) await loseSessions(pick(replicas));
    else await spend(replicas, random, key, callId);
  }
}

async function loseSessions({ location }: Replica): Promise<void> {
  if (location.dialect === 'postgres') await endSessions(location);
}

async function spend(
  replicas: readonly Replica[],
  random: () => number,
  key: AgentKey,
  callId: string,
): Promise<void> {
  const request = { key, callId, requestDigest: callId, traceparent: '' };
  const hold = { usage: { ...NO_USAGE, input: HOLD }, cost: 0n, turns: 1n };
  const reserved = await untilKnown(replicas, random, ({ context }) =>
    reserve(context, { ...request, hold, ttlMs: 600_000 }),
  );
  if (typeof reserved === 'string') {
    expect(reserved).toMatch(/^(BUDGET_EXHAUSTED|HALTED)$/);
    return;
  }
  const chance = random();
  if (chance < 0.3) return;
  await untilKnown<unknown>(replicas, random, ({ context }) => {
    if (chance < 0.6) return release(context, key, callId);
    const usage = { ...NO_USAGE, input: HOLD / 2n };
    const spent = { usage, cost: 0n, turns: 1n, estimated: false, failed: false };
    return settle(context, { ...request, spent, model: '' });
  });
}

/** Halts a tenant or everything; from the response on nothing begins until the halt is lifted (SV-9). */
async function halt(
  replicas: readonly Replica[],
  random: () => number,
  { tenant }: Scope,
  orderId: string,
): Promise<void> {
  const kind =
    random() < 0.5
      ? ({ case: 'tenant', value: tenant ?? '' } as const)
      : ({ case: 'everything', value: {} } as const);
  const order = { orderId, scope: { kind }, cause: 1, reason: 'Stop.', orderedBy: 'mia' };
  await untilKnown(replicas, random, ({ freezes }) => freezes.freeze({ order: order as never }));
  const [first] = replicas;
  if (first === undefined) return;
  const entries = () => untilKnown([first], random, (replica) => entriesOf(replica, tenant ?? ''));
  const before = await entries();
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const key = { tenant: tenant ?? '', runId: 'run-1', instance: AGENT };
    const refused = await untilKnown(replicas, random, ({ context }) =>
      reserve(context, {
        key,
        callId: `${orderId}-${attempt}`,
        requestDigest: '',
        traceparent: '',
        hold: { usage: NO_USAGE, cost: 0n, turns: 1n },
        ttlMs: 600_000,
      }),
    );
    expect(refused).toBe('HALTED');
  }
  expect(await entries()).toEqual(before);
  await untilKnown(replicas, random, ({ freezes }) => freezes.unfreeze({ orderId }));
}

/** Every level of the tenants has exactly what its entries hold and have spent. */
async function expectExactBalances({ context }: Replica, tenants: readonly string[]) {
  const { db } = context.store;
  const entries = await db
    .selectFrom('entries')
    .selectAll()
    .where('tenant', 'in', tenants)
    .execute();
  const expected = new Map<string, bigint>();
  for (const entry of entries) {
    const { tenant, run_id, session_id, day, state } = entry;
    const isHolding = state === 'reserved' || state === 'sent';
    const amount = isHolding ? entry.held_input : state === 'settled' ? entry.input_tokens : 0n;
    for (const id of [
      `run:${tenant}/${run_id}`,
      `session:${tenant}/${session_id}`,
      `day:${tenant}/${day}`,
    ]) {
      expected.set(id, (expected.get(id) ?? 0n) + amount);
    }
  }
  const balances = await db
    .selectFrom('balances')
    .selectAll()
    .where('id', 'in', [...expected.keys()])
    .execute();
  const actual = balances.map(
    ({ id, used_tokens, reserved_tokens }) => [id, used_tokens + reserved_tokens] as const,
  );
  expect(new Map(actual)).toEqual(expected);
}

/** Runs random schedules, each with tenants of its own and some of the replicas. */
async function runSchedules(location: StoreLocation, maxReplicas: number): Promise<void> {
  const all: Replica[] = [];
  for (let count = 0; count < maxReplicas; count += 1) all.push(await startReplica(location));
  const [first] = all as [Replica];
  await rejectExceededCaps(first.context.store);
  for (let seed = 1; seed <= SCHEDULES; seed += 1) {
    const tenants = [`acme-${seed}`, `other-${seed}`];
    const replicas = all.slice(0, 1 + (seed % maxReplicas));
    const known = (work: (replica: Replica) => Promise<void>) =>
      untilKnown([first], seeded(seed), work);
    // A session that was ended in the previous schedule may be the next to be used.
    expect(await known((replica) => openTabs(replica, tenants))).toBeUndefined();
    const schedule = { replicas, tenants, seed };
    await Promise.all(Array.from({ length: CLIENTS }, (_, client) => runClient(schedule, client)));
    expect(await known((replica) => expectExactBalances(replica, tenants))).toBeUndefined();
  }
}

it(
  'keeps every cap and every halt in random schedules on SQLite (EM-3, SV-9)',
  async () => {
    await runSchedules({ dialect: 'sqlite', file: ':memory:' }, 1);
  },
  TIMEOUT_MS,
);

describe.runIf(isPostgresAvailable())('meters on one PostgreSQL schema', () => {
  it(
    'keep every cap and every halt in random schedules with lost sessions (EM-3, SV-9, SYS-5)',
    async () => {
      await runSchedules(await postgresLocation(), MAX_REPLICAS);
    },
    TIMEOUT_MS,
  );
});
