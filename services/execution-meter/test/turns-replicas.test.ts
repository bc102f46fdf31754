import { createFreezeHandlers } from '@writ/freeze';
import { isWritError, ManualClock, type Scope } from '@writ/kernel';
import type { StoreLocation } from '@writ/store';
import { isPostgresAvailable } from '@writ/testing/postgres';
import { type ReplicaSet, runSchedules, type Schedule, schedulesOf } from '@writ/testing/schedules';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
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
/** Liveness limit of all schedules on a busy machine, ms. */
const TIMEOUT_MS = 120_000 + schedulesOf(0.2) * 2_000;

const NO_CALLS = {
  callers: () => [],
  abort: () => undefined,
  settle: async () => undefined,
  list: () => [],
};

/** A meter without its listener. */
interface Replica {
  readonly store: MeterStore;
  readonly context: MeterContext;
  readonly freezes: ReturnType<typeof createFreezeHandlers>;
}

type Meters = ReplicaSet<Replica>;

async function openReplica(location: StoreLocation): Promise<Replica> {
  // No schedule is divided by the end of a day, at which the caps of the day begin again.
  const clock = new ManualClock(new Date('2026-01-01T12:00:00Z'));
  const context = { ...(await openTabReplica(location)), clock };
  const { store, telemetry } = context;
  const freezes = createFreezeHandlers({
    store,
    clock,
    log: telemetry.log,
    calls: NO_CALLS,
    callsInStore: async () => [],
    onRecord: async () => undefined,
  });
  return { store, context, freezes };
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

/** The reason of the refusal of a request, or `done`. */
async function outcomeOf(
  meters: Meters,
  random: () => number,
  request: (replica: Replica) => Promise<unknown>,
): Promise<string> {
  try {
    await meters.request(random, request);
    return 'done';
  } catch (error) {
    if (!isWritError(error)) throw error;
    return error.reason;
  }
}

/** The reserves, settlements and halts of one schedule, in tenants of its own. */
class Spending {
  readonly #meters: Meters;
  readonly #tenants: readonly string[];

  constructor({ seed, replicas }: Schedule<Replica>) {
    this.#meters = replicas;
    this.#tenants = [`acme-${seed}`, `other-${seed}`];
  }

  async prepare(): Promise<void> {
    await this.#meters.request(
      () => 0,
      async ({ context }) => {
        for (const tenant of this.#tenants) await openTabs(context, tenant);
      },
    );
  }

  async step(random: () => number, name: string): Promise<void> {
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const key = { tenant: pick(this.#tenants), runId: pick(RUNS), instance: AGENT };
    if (random() < 0.04) await this.#halt(random, key, name);
    else await this.#spend(random, key, name);
  }

  async check(): Promise<void> {
    await this.#meters.request(
      () => 0,
      ({ store }) => expectExactBalances(store, this.#tenants),
    );
    for (const tenant of this.#tenants) await this.#spendRest(tenant);
  }

  async #spend(
    random: () => number,
    key: { readonly tenant: string; readonly runId: string; readonly instance: string },
    callId: string,
  ): Promise<void> {
    const reserved = await this.#reserve(random, key, callId, HOLD);
    if (reserved !== 'done') {
      expect(reserved).toMatch(/^(BUDGET_EXHAUSTED|HALTED)$/);
      return;
    }
    const chance = random();
    if (chance < 0.3) return;
    await this.#meters.request<unknown>(random, ({ context }) => {
      if (chance < 0.6) return release(context, key, callId);
      const usage = { ...NO_USAGE, input: HOLD / 2n };
      const spent = { usage, cost: 0n, turns: 1n, estimated: false, failed: false };
      const request = { key, callId, requestDigest: callId, traceparent: '' };
      return settle(context, { ...request, spent, model: '' });
    });
  }

  async #reserve(
    random: () => number,
    key: { readonly tenant: string; readonly runId: string; readonly instance: string },
    callId: string,
    tokens: bigint,
  ): Promise<string> {
    const hold = { usage: { ...NO_USAGE, input: tokens }, cost: 0n, turns: 1n };
    const request = { key, callId, requestDigest: callId, traceparent: '', hold, ttlMs: 600_000 };
    return await outcomeOf(this.#meters, random, ({ context }) => reserve(context, request));
  }

  /** Halts a tenant or everything; from the response on nothing begins until the halt is lifted (SV-9). */
  async #halt(random: () => number, { tenant }: Scope, orderId: string): Promise<void> {
    const kind =
      random() < 0.5
        ? ({ case: 'tenant', value: tenant ?? '' } as const)
        : ({ case: 'everything', value: {} } as const);
    const order = { orderId, scope: { kind }, cause: 1, reason: 'Stop.', orderedBy: 'mia' };
    await this.#meters.request(random, ({ freezes }) => freezes.freeze({ order: order as never }));
    const entries = () =>
      this.#meters.request(random, ({ store }) => entriesOf(store, tenant ?? ''));
    const before = await entries();
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const key = { tenant: tenant ?? '', runId: 'run-1', instance: AGENT };
      expect(await this.#reserve(random, key, `${orderId}-${attempt}`, 0n)).toBe('HALTED');
    }
    expect(await entries()).toEqual(before);
    await this.#meters.request(random, ({ freezes }) => freezes.unfreeze({ orderId }));
  }

  /**
   * Takes a tenant to 99 % of its cap and then, at all replicas at once, to the cap in steps of one token: none is refused
   * while something is free, and nothing is granted after the last one.
   */
  async #spendRest(tenant: string): Promise<void> {
    const runId = 'rest';
    const key = { tenant, runId, instance: AGENT };
    const owner = { ...key, sessionId: 'rest' };
    await this.#meters.request(
      () => 0,
      ({ context }) => openTabOf(context, owner, {}),
    );
    const free =
      TENANT_CAP -
      (await this.#meters.request(
        () => 0,
        ({ store }) => usedBy(store, tenant),
      ));
    const rest = TENANT_CAP / 100n + 1n;
    if (free > rest) expect(await this.#reserve(() => 0, key, 'rest', free - rest)).toBe('done');
    const left = free > rest ? rest : free;
    const last = Array.from({ length: Number(left) }, (_, index) =>
      this.#reserve(() => index / Number(left), key, `rest-${index}`, 1n),
    );
    expect(await Promise.all(last)).toEqual(last.map(() => 'done'));
    expect(await this.#reserve(() => 0, key, 'too-much', 1n)).toBe('BUDGET_EXHAUSTED');
  }
}

async function openTabs(context: MeterContext, tenant: string): Promise<void> {
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

async function entriesOf({ db }: MeterStore, tenant: string): Promise<string[]> {
  const rows = await db
    .selectFrom('entries')
    .select(['run_id', 'call_id'])
    .where('tenant', '=', tenant)
    .orderBy('run_id')
    .orderBy('call_id')
    .execute();
  return rows.map(({ run_id, call_id }) => `${run_id}/${call_id}`);
}

/** What a tenant has spent and holds today. */
async function usedBy({ db }: MeterStore, tenant: string): Promise<bigint> {
  const rows = await db
    .selectFrom('balances')
    .select(['used_tokens', 'reserved_tokens'])
    .where('id', 'like', `day:${tenant}/%`)
    .execute();
  return rows.reduce((sum, row) => sum + row.used_tokens + row.reserved_tokens, 0n);
}

/** Every level of the tenants has exactly what its entries hold and have spent. */
async function expectExactBalances({ db }: MeterStore, tenants: readonly string[]) {
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

const METERS = {
  open: openReplica,
  guard: ({ store }: Replica) => rejectExceededCaps(store),
  scenario: (schedule: Schedule<Replica>) => new Spending(schedule),
};

it(
  'keeps every cap and halt, and grants what is free, in random schedules with kills on SQLite (EM-3, SV-9)',
  async () => {
    const size = { maxReplicas: 1, schedules: schedulesOf(0.1), clients: 5, steps: 8 };
    await runSchedules({ service: METERS, dialect: 'sqlite', ...size });
  },
  TIMEOUT_MS,
);

describe.runIf(isPostgresAvailable())('meters on one PostgreSQL schema', () => {
  it(
    'keep every cap and halt, and grant what is free, in random schedules with kills and lost sessions (EM-3, SV-9, SYS-5)',
    async () => {
      const size = { maxReplicas: 4, schedules: schedulesOf(0.2), clients: 5, steps: 8 };
      await runSchedules({ service: METERS, dialect: 'postgres', ...size });
    },
    TIMEOUT_MS,
  );
});
