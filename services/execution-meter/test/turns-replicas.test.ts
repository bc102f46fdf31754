import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createFreezeHandlers } from '@writ/freeze';
import { type AgentKey, isWritError, ManualClock, type Scope } from '@writ/kernel';
import type { StoreLocation } from '@writ/store';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { type ReplicaSet, runSchedules, type Schedule, schedulesOf } from '@writ/testing/schedules';
import { sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import { accessResponseOf } from '../src/app/calls/access-response.ts';
import { providerIdOf } from '../src/app/calls/call-planner.ts';
import { release, reserve, settle } from '../src/app/tabs/reservations.ts';
import { setCaps } from '../src/app/tabs/set-caps.ts';
import { readTab } from '../src/app/tabs/tab-view.ts';
import type { MeterContext } from '../src/context.ts';
import { Catalog, type ModelEntry } from '../src/domain/catalog/catalog.ts';
import { type Balance, remainingBudget } from '../src/domain/ledger/balance.ts';
import { NO_USAGE } from '../src/domain/ledger/spending.ts';
import type { MeterStore, MeterTransaction } from '../src/store/meter-store.ts';
import { requireTab } from '../src/store/require-spendable.ts';
import { insertResponse, knownIds } from '../src/store/responses.ts';
import { invalidGrants, rejectExceededCaps } from './cap-triggers.ts';
import { openTabOf, openTabReplica } from './tab-replica.ts';

const RUNS = ['run-1', 'run-2', 'run-3'];
const AGENT = 'root';
const TENANT_CAP = 180n;
const SESSION_CAP = 140n;
const RUN_CAP = 70n;
const HOLD = 20n;
const NONE = { booked: 0n, debt: 0n };
/** Timeout of all schedules together on a busy machine, ms. */
const TIMEOUT_MS = 300_000 + schedulesOf(0.2) * 5_000;

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

async function openReplica(location: StoreLocation, slices?: number): Promise<Replica> {
  // A fixed time at noon, so that no schedule passes midnight, when daily caps are reset.
  const clock = new ManualClock(new Date('2026-01-01T12:00:00Z'));
  const context = { ...(await openTabReplica(location, slices)), clock };
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

/** Returns the reason code if the request is refused, else `done`. */
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

/**
 * Runs the reservations, settlements, cap changes and halts of one schedule, in tenants that only this schedule uses.
 */
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
    const chance = random();
    if (chance < 0.04) await this.#halt(random, key, name);
    else if (chance < 0.08) {
      const tokens = TENANT_CAP - 60n + BigInt(Math.floor(random() * 180));
      const change = { requestId: name, tokens };
      await this.#meters.request(random, ({ context }) =>
        setTenantCap(context, key.tenant, change),
      );
    } else await this.#spend(random, key, name);
  }

  async check(): Promise<void> {
    await this.#meters.request(
      () => 0,
      ({ store }) => expectExactBalances(store, this.#tenants),
    );
    for (const tenant of this.#tenants) {
      for (const runId of RUNS) await this.#expectNothingStuck({ tenant, runId, instance: AGENT });
      await this.#spendRest(tenant);
    }
  }

  async #spend(random: () => number, key: AgentKey, callId: string): Promise<void> {
    const reserved = await this.#reserve(random, key, callId, HOLD);
    if (reserved !== 'done') {
      expect(reserved).toMatch(/^(BUDGET_EXHAUSTED|HALTED)$/);
      return;
    }
    const chance = random();
    if (chance < 0.3) return;
    await this.#meters.request<unknown>(random, ({ context }) => {
      if (chance < 0.6) return release(context, key, callId);
      // Some settlements exceed their reservation.
      const usage = { ...NO_USAGE, input: chance < 0.9 ? HOLD / 2n : HOLD * 2n };
      const spent = { usage, cost: 0n, turns: 1n, estimated: false, failed: false };
      const request = { key, callId, requestDigest: callId, traceparent: '' };
      return settle(context, { ...request, spent, model: '' });
    });
    const invalid = await this.#meters.request(random, ({ store }) =>
      invalidGrants(store, key.tenant),
    );
    expect(invalid).toEqual([]);
  }

  async #reserve(
    random: () => number,
    key: AgentKey,
    callId: string,
    tokens: bigint,
  ): Promise<string> {
    const hold = { usage: { ...NO_USAGE, input: tokens }, cost: 0n, turns: 1n };
    const request = { key, callId, requestDigest: callId, traceparent: '', hold, ttlMs: 600_000 };
    return await outcomeOf(this.#meters, random, ({ context }) => reserve(context, request));
  }

  /**
   * Halts a tenant or everything, and checks that no reservation is accepted after the response until the halt is
   * lifted (SV-9).
   */
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
   * Reserves up to 99 % of a tenant's cap, then the rest in steps of one token at all replicas concurrently. Checks
   * that no step is refused, and that a reservation after the last step is refused.
   */
  async #spendRest(tenant: string): Promise<void> {
    const runId = 'rest';
    const key = { tenant, runId, instance: AGENT };
    const owner = { ...key, sessionId: 'rest' };
    await this.#meters.request(
      () => 0,
      ({ context }) => openTabOf(context, owner, {}),
    );
    const levels = await this.#levelsOf(key);
    // If the booked amount exceeds a cap, because the cap was lowered or a settlement exceeded its reservation, every
    // call is refused.
    const free = levels.some((level) => leftOf(level) < 0n) ? 0n : leftOf(tenantDay(levels));
    const rest = (tenantDay(levels).caps.tokens ?? 0n) / 100n + 1n;
    if (free > rest) expect(await this.#reserve(() => 0, key, 'rest', free - rest)).toBe('done');
    const left = free > rest ? rest : free;
    const last = Array.from({ length: Number(left) }, (_, index) =>
      this.#reserve(() => index / Number(left), key, `rest-${index}`, 1n),
    );
    expect(await Promise.all(last)).toEqual(last.map(() => 'done'));
    expect(await this.#reserve(() => 0, key, 'too-much', 1n)).toBe('BUDGET_EXHAUSTED');
  }

  /**
   * Checks that the whole remaining budget of a run can be reserved and not one token more, even if the grants for it
   * are in other slices (EM-3).
   */
  async #expectNothingStuck(key: AgentKey): Promise<void> {
    const levels = await this.#levelsOf(key);
    const left = remainingBudget(levels).tokens ?? 0n;
    const full = levels.find((level) => leftOf(level) <= left);
    const { used, reserved, caps } = full ?? (levels[0] as Balance);
    const booked = used.tokens + reserved.tokens + left + 1n;
    const hold = { usage: { ...NO_USAGE, input: left + 1n }, cost: 0n, turns: 0n };
    const above = {
      key,
      callId: 'above',
      requestDigest: '',
      traceparent: '',
      hold,
      ttlMs: 600_000,
    };
    const refused = this.#meters.request(
      () => 0,
      ({ context }) => reserve(context, above),
    );
    await expect(refused).rejects.toMatchObject({
      message: expect.stringMatching(`^Token budget exceeded: ${booked} > ${caps.tokens}( |$)`),
      metadata: { fits_tokens: String(left) },
    });
    if (levels.some((level) => leftOf(level) < 0n)) return;
    expect(await this.#reserve(() => 0, key, 'all-that-is-left', left)).toBe('done');
    await this.#meters.request(
      () => 0,
      ({ context }) => release(context, key, 'all-that-is-left'),
    );
  }

  #levelsOf(key: AgentKey): Promise<readonly Balance[]> {
    return this.#meters.request(
      () => 0,
      async ({ context }) => (await readTab(context, key)).levels,
    );
  }
}

function tenantDay(levels: readonly Balance[]): Balance {
  return levels.find(({ level }) => level === 'tenant_day') as Balance;
}

function leftOf({ caps, used, reserved }: Balance): bigint {
  if (caps.tokens === undefined) return HOLD * 100n;
  return caps.tokens - used.tokens - reserved.tokens;
}

async function setTenantCap(
  context: MeterContext,
  tenant: string,
  { requestId, tokens }: { readonly requestId: string; readonly tokens: bigint },
): Promise<void> {
  const scope = { tenant, level: 'tenant_day', sessionId: '', runId: '' } as const;
  const request = { requestId, requestDigest: 'caps' };
  await setCaps(context, request, { ...scope, caps: { tokens }, setBy: 'mia' });
}

async function openTabs(context: MeterContext, tenant: string): Promise<void> {
  await setTenantCap(context, tenant, { requestId: `caps-${tenant}`, tokens: TENANT_CAP });
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

/**
 * Checks that the amounts of every level of the tenants equal the sums of its entries, and that its grants do not
 * exceed its cap.
 */
async function expectExactBalances(store: MeterStore, tenants: readonly string[]): Promise<void> {
  for (const tenant of tenants) expect(await invalidGrants(store, tenant)).toEqual([]);
  const { db } = store;
  const entries = await db
    .selectFrom('entries')
    .selectAll()
    .where('tenant', 'in', tenants)
    .execute();
  const expected = new Map<string, { readonly booked: bigint; readonly debt: bigint }>();
  for (const entry of entries) {
    const { tenant, run_id, session_id, day, state } = entry;
    const isHolding = state === 'reserved' || state === 'sent';
    const amount = isHolding ? entry.held_input : state === 'settled' ? entry.input_tokens : 0n;
    const over = entry.exceeded ? entry.input_tokens - entry.held_input : 0n;
    for (const id of [
      `run:${tenant}/${run_id}`,
      `session:${tenant}/${session_id}`,
      `day:${tenant}/${day}`,
    ]) {
      const { booked, debt } = expected.get(id) ?? NONE;
      expected.set(id, { booked: booked + amount, debt: debt + over });
    }
  }
  const balances = await db
    .selectFrom('balances')
    .selectAll()
    .where((row) => row.or([...expected.keys()].map((id) => row.between('id', id, `${id}$`))))
    .execute();
  const actual = new Map<string, { readonly booked: bigint; readonly debt: bigint }>();
  for (const { id, used_tokens, reserved_tokens, debt_tokens } of balances) {
    const [level = ''] = id.split('#');
    if (!expected.has(level)) continue;
    const { booked, debt } = actual.get(level) ?? NONE;
    const sum = { booked: booked + used_tokens + reserved_tokens, debt: debt + debt_tokens };
    actual.set(level, sum);
  }
  expect(actual).toEqual(expected);
}

/** The meters of a schedule; on PostgreSQL with 64 slices of each cap. */
function metersOf(slices?: number) {
  return {
    open: (location: StoreLocation) => openReplica(location, slices),
    guard: ({ store }: Replica) => rejectExceededCaps(store),
    scenario: (schedule: Schedule<Replica>) => new Spending(schedule),
  };
}

it.each([1, 3])(
  'enforces every cap and halt, and grants the remaining budget, in random schedules with kills on SQLite with %d slices (EM-3, SV-9)',
  async (slices) => {
    const size = { maxReplicas: 1, schedules: schedulesOf(0.05), clients: 5, steps: 8 };
    await runSchedules({ service: metersOf(slices), dialect: 'sqlite', ...size });
  },
  TIMEOUT_MS,
);

describe.runIf(isPostgresAvailable())('meters on one PostgreSQL schema', () => {
  it(
    'enforce every cap and halt, and grant the remaining budget, in random schedules with kills and lost sessions (EM-3, SV-9, SYS-5)',
    async () => {
      const size = { maxReplicas: 4, schedules: schedulesOf(0.2), clients: 5, steps: 8 };
      await runSchedules({ service: metersOf(), dialect: 'postgres', ...size });
    },
    TIMEOUT_MS,
  );

  it('delete a stored response while a transaction of another tenant is open (AP-2, SYS-5)', async () => {
    const model = await startProvider();
    const opened = await openTabReplica(await postgresLocation());
    const { store } = opened;
    onTestFinished(() => store.close());
    const context = { ...opened, catalog: new Catalog(new Map([[model.alias, { entry: model }]])) };
    const key = { tenant: 'acme', runId: 'run-1', instance: AGENT };
    await openTabOf(context, { ...key, sessionId: 'session-1', models: [model.alias] }, {});
    const tab = await requireTab(store.db, key);
    const issued = { responseId: 'resp-1', itemIds: [], provider: providerIdOf(model) };
    const answer = { ...issued, callId: 'op-1', spent: NO_USAGE, at: new Date() };
    await store.transaction((trx) => insertResponse(trx, tab, answer), { tenant: key.tenant });
    const begun = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    onTestFinished(() => ended.resolve());
    const work = async (trx: MeterTransaction): Promise<void> => {
      await sql`select 1`.execute(trx);
      begun.resolve();
      await ended.promise;
    };
    const open = store.transaction(work, { tenant: 'other' });
    await begun.promise;
    const access = { access: 'delete', query: '', tokenModels: [model.alias] } as const;
    const request = { ...key, ...access, responseId: 'resp-1' };
    await accessResponseOf(context, request, new AbortController().signal);
    expect(await knownIds(store.db, tab, ['resp-1'])).toEqual([]);
    ended.resolve();
    await open;
  });
});

/** A model whose provider accepts every request. */
async function startProvider(): Promise<ModelEntry> {
  const server = createServer((_, response) => response.end('{}'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const baseUrl = `http://127.0.0.1:${port}`;
  return { alias: 'hello', baseUrl, keyVariable: undefined, timeoutMs: 10_000 } as ModelEntry;
}
