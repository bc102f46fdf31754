import { type AgentKey, isWritError, ManualClock } from '@writ/kernel';
import type { StoreLocation } from '@writ/store';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bookingTransaction } from '../src/app/tabs/booking-transaction.ts';
import { reserve, settle } from '../src/app/tabs/reservations.ts';
import { setCaps } from '../src/app/tabs/set-caps.ts';
import { readBalances } from '../src/app/tabs/tab-view.ts';
import type { MeterContext } from '../src/context.ts';
import { NO_USAGE } from '../src/domain/ledger/spending.ts';
import { sliceOf } from '../src/store/level-ids.ts';
import { invalidGrants } from './cap-triggers.ts';
import { openTabOf, openTabReplica } from './tab-replica.ts';

const TENANT = 'acme';
const AGENT = 'root';
const RUNS = Array.from({ length: 12 }, (_, index) => `run-${index}`);
const CAP = 60n;
const DAY = { tenant: TENANT, level: 'tenant_day', sessionId: '', runId: '' } as const;

/** Opens replicas with tabs of all runs in one session; the day of the tenant has a cap of turns. */
async function startReplicas(
  location: StoreLocation,
  { count, slices }: { readonly count: number; readonly slices: number },
): Promise<readonly MeterContext[]> {
  const replicas: MeterContext[] = [];
  for (let index = 0; index < count; index += 1) {
    const replica = await openTabReplica(location, slices);
    onTestFinished(() => replica.store.close());
    replicas.push(replica);
  }
  const [first] = replicas as [MeterContext];
  const request = { requestId: 'cap', requestDigest: 'cap' };
  await setCaps(first, request, { ...DAY, caps: { turns: CAP }, setBy: 'mia' });
  for (const runId of RUNS) {
    const owner = { tenant: TENANT, runId, instance: AGENT, sessionId: 'session-1' };
    await openTabOf(first, owner, {});
  }
  return replicas;
}

function requestOf(key: AgentKey, callId: string) {
  return { key, callId, requestDigest: callId, traceparent: '' };
}

/** Reserves a turn in one of the runs. Returns the error if the turn is refused, else undefined. */
async function reserveTurn(replicas: readonly MeterContext[], n: number): Promise<unknown> {
  const context = replicas[n % replicas.length] as MeterContext;
  const runId = RUNS[n % RUNS.length] as string;
  const request = requestOf({ tenant: TENANT, runId, instance: AGENT }, `call-${n}`);
  const hold = { usage: NO_USAGE, cost: 0n, turns: 1n };
  try {
    await reserve(context, { ...request, hold, ttlMs: 600_000 });
    return undefined;
  } catch (error) {
    if (isWritError(error)) return error;
    throw error;
  }
}

async function settleTurn(replicas: readonly MeterContext[], n: number): Promise<void> {
  const context = replicas[(n + 1) % replicas.length] as MeterContext;
  const runId = RUNS[n % RUNS.length] as string;
  const request = requestOf({ tenant: TENANT, runId, instance: AGENT }, `call-${n}`);
  const spent = { usage: NO_USAGE, cost: 0n, turns: 1n, estimated: false, failed: false };
  await settle(context, { ...request, spent, model: '' });
}

async function thresholdsOf({ store }: MeterContext): Promise<number> {
  const rows = await store.db
    .selectFrom('outbox')
    .select('event_id')
    .distinct()
    .where('subject', 'like', '%BUDGET_THRESHOLD')
    .execute();
  return rows.length;
}

interface Place {
  readonly name: string;
  readonly location: () => Promise<StoreLocation>;
  readonly count: number;
  readonly slices: number;
}

const PLACES: readonly Place[] = [
  {
    name: 'SQLite',
    location: async () => ({ dialect: 'sqlite', file: ':memory:' }),
    count: 1,
    slices: 5,
  },
  ...(isPostgresAvailable()
    ? [{ name: 'PostgreSQL', location: () => postgresLocation(), count: 4, slices: 64 }]
    : []),
];

describe.each(PLACES)('a level with slices on $name', ({ location, count, slices }) => {
  it('grants concurrent runs exactly its cap, and then refuses with exact amounts (EM-3, SYS-5)', async () => {
    const replicas = await startReplicas(await location(), { count, slices });
    const outcomes = await Promise.all(
      Array.from({ length: 90 }, (_, n) => reserveTurn(replicas, n)),
    );
    const refused = outcomes.filter((outcome) => outcome !== undefined);
    expect(refused).toHaveLength(90 - Number(CAP));
    for (const error of refused) {
      expect(error).toMatchObject({
        message: 'Turn budget exceeded: 61 > 60 (the tenant today)',
        metadata: { fits_turns: '0', level: 'tenant_day' },
      });
    }
  });

  it('emits each threshold event in the settlement that reaches the threshold (EM-3)', async () => {
    const replicas = await startReplicas(await location(), { count, slices });
    const [first] = replicas as [MeterContext];
    const settleSome = async (from: number, until: number) => {
      const calls = Array.from({ length: until - from }, (_, index) => from + index);
      await Promise.all(calls.map((n) => reserveTurn(replicas, n)));
      await Promise.all(calls.map((n) => settleTurn(replicas, n)));
      const [day] = await readBalances(first, TENANT, '');
      expect(day?.used.turns).toBe(BigInt(until));
      return await thresholdsOf(first);
    };
    expect(await settleSome(0, 29)).toBe(0);
    expect(await settleSome(29, 30)).toBe(1);
    expect(await settleSome(30, 47)).toBe(1);
    expect(await settleSome(47, 59)).toBe(2);
    expect(await settleSome(59, 60)).toBe(3);
  });

  it('applies a raised, lowered or removed cap exactly (EM-3)', async () => {
    const replicas = await startReplicas(await location(), { count, slices });
    const [first] = replicas as [MeterContext];
    const change = async (requestId: string, turns: bigint | undefined) => {
      const caps = turns === undefined ? undefined : { turns };
      await setCaps(first, { requestId, requestDigest: '' }, { ...DAY, caps, setBy: 'mia' });
    };
    let next = 0;
    const accepted = async (attempts: number) => {
      const calls = Array.from({ length: attempts }, (_, index) => next + index);
      next += attempts;
      const outcomes = await Promise.all(calls.map((n) => reserveTurn(replicas, n)));
      expect(await invalidGrants(first.store, TENANT)).toEqual([]);
      return outcomes.filter((outcome) => outcome === undefined).length;
    };
    expect(await accepted(20)).toBe(20);
    await change('lower', 30n);
    expect(await accepted(20)).toBe(10);
    await change('raise', 45n);
    expect(await accepted(20)).toBe(15);
    // Removing a cap invalidates its grants, even if the same cap is set again later.
    await change('high', 400n);
    expect(await accepted(30)).toBe(30);
    await change('remove', undefined);
    expect(await accepted(30)).toBe(30);
    await change('again', 110n);
    expect(await accepted(20)).toBe(5);
    await change('below', 45n);
    expect(await accepted(5)).toBe(0);
  });

  it('books a settlement after midnight to the day of its reservation, and grants the full cap of the new day (EM-3)', async () => {
    const clock = new ManualClock(new Date('2026-03-31T23:59:00Z'));
    const opened = await startReplicas(await location(), { count, slices });
    const replicas = opened.map((context) => ({ ...context, clock }));
    for (let n = 0; n < 60; n += 1) expect(await reserveTurn(replicas, n)).toBeUndefined();
    expect(await reserveTurn(replicas, 60)).toBeDefined();
    clock.advance(120_000);
    for (let n = 61; n < 81; n += 1) expect(await reserveTurn(replicas, n)).toBeUndefined();
    for (let n = 0; n < 60; n += 1) await settleTurn(replicas, n);
    const [day] = await readBalances(replicas[0] as MeterContext, TENANT, '');
    expect(day).toMatchObject({ used: { turns: 0n }, reserved: { turns: 20n } });
    for (let n = 81; n < 121; n += 1) expect(await reserveTurn(replicas, n)).toBeUndefined();
    expect(await reserveTurn(replicas, 121)).toBeDefined();
  });
});

describe.runIf(isPostgresAvailable())('meters on one PostgreSQL schema', () => {
  it('accept reservations in runs of a capped tenant while a transaction of another run is open (EM-3, SYS-5)', async () => {
    const replicas = await startReplicas(await postgresLocation(), { count: 2, slices: 64 });
    const [first, second] = replicas as [MeterContext, MeterContext];
    const caps = { turns: 100_000n };
    const request = { requestId: 'large', requestDigest: '' };
    await setCaps(first, request, { ...DAY, caps, setBy: 'mia' });
    // Gives every run a grant.
    for (let n = 0; n < RUNS.length; n += 1) expect(await reserveTurn([first], n)).toBeUndefined();
    const [held, ...others] = RUNS.map((runId) => ({ tenant: TENANT, runId }));
    if (held === undefined) throw new Error('There is no run.');
    const isOther = ({ runId }: { readonly runId: string }) =>
      sliceOf({ tenant: TENANT, runId }, 64) !== sliceOf(held, 64);
    const free = others.filter(isOther);
    expect(free.length).toBeGreaterThan(5);
    const begun = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    onTestFinished(() => ended.resolve());
    const open = bookingTransaction(first, held, async (_trx, { reach }) => {
      begun.resolve();
      await ended.promise;
      return reach;
    });
    await begun.promise;
    for (const { runId } of free) {
      const n = RUNS.indexOf(runId) + RUNS.length;
      expect(await reserveTurn([second], n)).toBeUndefined();
    }
    ended.resolve();
    expect(await open).toBe('own');
  });
});
