import { Priority, systemClock } from '@writ/kernel';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { renewSlots } from '../src/app/slot/renew-slots.ts';
import { openPoolOf, openPoolReplica, ROOT } from './pool-replica.ts';
import { TestRun } from './test-run.ts';
import { type SpawnClient, World } from './world.ts';

// Long enough for a slow machine: no slot is renewed during the test.
const LEASE = { leaseMs: 600_000 };

describe('concurrent acquires', () => {
  let world: World;
  let run: TestRun;
  let clients: SpawnClient[];
  beforeAll(async () => {
    world = await World.start({ clock: systemClock, durable: true, config: LEASE });
    clients = Array.from({ length: 4 }, () => world.clientOf(world.peer('supervisor')));
  });
  afterAll(() => world.stop());
  beforeEach(() => {
    run = new TestRun(world);
  });

  const race = (count: number, priorityOf: (index: number) => Priority) =>
    Promise.allSettled(
      Array.from({ length: count }, (_, index) => {
        const client = clients[index % clients.length];
        return run.acquire(`a-${index}`, priorityOf(index), client && { client });
      }),
    );

  it('get 19 of 20 slots, because the root holds one, when four clients send 1,000 (SB-2, SB-6)', async () => {
    await run.open({ maxAgents: 20 });
    const outcomes = await race(1_000, () => Priority.NORMAL);
    const granted = outcomes.filter(({ status }) => status === 'fulfilled');
    const reasons = new Set(
      outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.reason : 'OK')),
    );
    expect(granted).toHaveLength(19);
    expect(reasons).toEqual(new Set(['OK', 'BUDGET_EXHAUSTED']));
    expect(await run.pool()).toMatchObject({ held: 20, totalSpawns: 19, totalRefusals: 981 });
  });

  it('of HIGH and LOW agents never exceed the cap, and every pause has one beneficiary (SB-2, SB-6)', async () => {
    await run.open({ maxAgents: 20 });
    const outcomes = await race(300, (index) => (index % 10 === 0 ? Priority.HIGH : Priority.LOW));
    const changes = outcomes.flatMap((outcome) =>
      outcome.status === 'fulfilled' ? outcome.value.changes : [],
    );
    const beneficiaries = changes.map(({ becauseOf }) => becauseOf?.instance);
    const victims = changes.map(({ agent }) => agent?.instance);
    expect(new Set(beneficiaries).size).toBe(changes.length);
    expect(new Set(victims).size).toBe(changes.length);
    const pool = await run.pool();
    expect(pool).toMatchObject({ held: 20, totalPauses: changes.length });
    expect(pool.paused).toHaveLength(changes.length);
    expect(changes.length).toBeGreaterThan(0);
    // 30 HIGH agents compete for 19 slots; 11 are refused because no agent of lower priority is left to pause.
    expect(pool.holders.filter((name) => Number(name?.slice(2)) % 10 === 0)).toHaveLength(19);
  });
});

describe.runIf(isPostgresAvailable())('concurrent acquires at two replicas', () => {
  it('hold 19 of 20 slots, because the root holds one, when 400 are sent (SB-2, SB-6, SYS-5)', async () => {
    const store = await postgresLocation();
    const world = await World.start({ clock: systemClock, config: { ...LEASE, store } });
    onTestFinished(() => world.stop());
    const replica = await world.startReplica();
    const run = new TestRun(world);
    await run.open({ maxAgents: 20 });
    const priorityOf = (index: number) => (index % 20 === 0 ? Priority.HIGH : Priority.NORMAL);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 400 }, (_, index) =>
        run.acquire(
          `a-${index}`,
          priorityOf(index),
          index % 2 === 0 ? undefined : { client: replica },
        ),
      ),
    );
    const granted = outcomes.filter(({ status }) => status === 'fulfilled').length;
    const pool = await run.pool();
    expect(pool).toMatchObject({ held: 20 });
    expect(granted).toBe(19 + pool.totalPauses);
    expect(await run.pool(replica)).toEqual(pool);
  });
});

it.runIf(isPostgresAvailable())(
  'renewals of several runs overlap with a transaction of another run (SB-8, SYS-5)',
  async () => {
    const { store, repository } = await openPoolReplica(await postgresLocation());
    onTestFinished(() => store.close());
    const runOf = (n: number) => ({ tenant: n % 2 === 0 ? 'acme' : 'globex', runId: `run-${n}` });
    const runs = Array.from({ length: 17 }, (_, n) => runOf(n));
    const other = runOf(17);
    for (const run of [...runs, other]) await openPoolOf(repository, run, 2);
    const begun = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    onTestFinished(() => ended.resolve());
    const open = repository.transaction([other], async () => {
      begun.resolve();
      await ended.promise;
    });
    await begun.promise;
    const event = { type: 'renew', instance: ROOT.instance, epoch: 1n, intent: 'run' } as const;
    const renewal = (run: object) => ({ agent: run as never, event });
    // Each run has two entries, so that there are more entries (34) than the number of runs that a transaction may
    // lock.
    const renewed = await renewSlots(repository, [...runs, ...runs].map(renewal));
    expect(renewed.size).toBe(34);
    expect([...renewed.values()].every((result) => 'member' in result)).toBe(true);
    ended.resolve();
    await open;
  },
);
