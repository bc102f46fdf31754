import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { FreezeCause } from '@writ/contracts/writ/control/v1/freeze_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { Priority } from '@writ/kernel';
import type { StoreLocation } from '@writ/store';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import pg from 'pg';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import {
  AGENT,
  MeterWorld,
  type MeterWorldOptions,
  type OtherMeter,
  RUN,
  TENANT,
} from './meter-fixture.ts';
import { textOf } from './model-calls.ts';

let world: MeterWorld;
let other: OtherMeter;
let location: Extract<StoreLocation, { readonly dialect: 'postgres' }>;
/** Timeout of operations that wait for a lock or a model on a busy machine, ms. */
const PATIENT_MS = 60_000;

async function start(options: MeterWorldOptions = {}): Promise<void> {
  // A test holds the lock of the store until the meters wait for it.
  location = { ...(await postgresLocation()), limits: { lockTimeoutMs: PATIENT_MS } };
  world = await MeterWorld.start({ ...options, config: { store: location } });
  other = await world.startOther();
}

afterEach(() => world?.[Symbol.asyncDispose]());

const STORE_LOCK = `hashtextextended('writ store ' || current_schema(), 0)`;

/** Opens a separate database connection that uses the schema of the meters. */
async function administrator(): Promise<pg.Client> {
  const admin = new pg.Client({ connectionString: location.url });
  await admin.connect();
  onTestFinished(() => admin.end());
  await admin.query(`set search_path to ${location.schema}`);
  return admin;
}

const order = (waitMs: number) => ({
  order: {
    orderId: 'order-1',
    scope: { kind: { case: 'run' as const, value: { tenant: TENANT, runId: RUN } } },
    cause: FreezeCause.HALT,
    reason: 'Stop it.',
    orderedBy: 'mia',
    wait: durationFromMs(waitMs),
  },
});

describe.runIf(isPostgresAvailable())('two meters on one PostgreSQL schema (SYS-5)', () => {
  it('share one cap, which concurrent reservations never exceed (EM-3)', async () => {
    await start();
    await world.openTab({ budget: { maxTokens: 1_000n } });
    const tab = { tenant: TENANT, runId: RUN, agentInstance: AGENT };
    const outcomes = await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        (index % 2 === 0 ? world : other).tab
          .reserve({ tab, callId: `op-${index}`, tokens: 40n })
          .then(
            () => 'granted',
            (error: { readonly reason: string }) => error.reason,
          ),
      ),
    );
    expect(outcomes.filter((outcome) => outcome === 'granted')).toHaveLength(25);
    expect(outcomes.filter((outcome) => outcome === 'BUDGET_EXHAUSTED')).toHaveLength(35);
  });

  it('accept no reservation on the other replica after a freeze response (SV-9)', async () => {
    await start();
    await world.openTab();
    const tab = { tenant: TENANT, runId: RUN, agentInstance: AGENT };
    let frozen = false;
    let late = 0;
    const reserving = Array.from({ length: 80 }, async (_, index) => {
      const began = frozen;
      const { tab: meter } = index % 2 === 0 ? world : other;
      const request = { tab, callId: `op-${index}`, tokens: 1n };
      await meter.reserve(request).then(
        () => {
          if (began) late += 1;
        },
        () => undefined,
      );
    });
    await other.tab.freeze(order(100));
    frozen = true;
    await expect(world.tab.reserve({ tab, callId: 'late', tokens: 1n })).rejects.toMatchObject({
      reason: 'HALTED',
    });
    await Promise.all(reserving);
    expect(late).toBe(0);
  });

  it('make one call per call_id across replicas and charge it once (EM-7)', async () => {
    await start({ scripts: { hello: [{ text: 'Once.', delay_ms: 100 }] } });
    await world.openTab();
    const options = await world.credentials();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        world.generate({}, options, index % 2 === 0 ? world.model : other.model),
      ),
    );
    expect(answers.map(textOf)).toEqual(Array(20).fill('Once.'));
    expect(world.simulator.requests()).toHaveLength(1);
    expect((await world.level(1)).usedTurns).toBe(1n);
  });

  it('abort calls in flight on the other replica and answer the freeze after their settlement (SUP-8, SV-9)', async () => {
    await start({ scripts: { hello: [{ text: 'Never.', delay_ms: 60_000 }] } });
    await world.openTab();
    const call = world.generate({}, await world.credentials(), other.model);
    await world.simulator.until(({ outcome }) => outcome === 'open');
    const { inFlight } = await world.tab.freeze(order(8_000));
    expect(inFlight).toEqual([]);
    expect((await call).error?.reason).toBe('HALTED');
    expect((await world.level(1)).reservedTurns).toBe(0n);
  });

  it('do not record an answer that arrives after the run ended on the other replica, if answers are retained only until the end of the run (SUP-4)', async () => {
    await start({ scripts: { hello: [{ text: 'Late.', delay_ms: 3_000 }] } });
    await world.openTab();
    const admin = await administrator();
    const options = { ...(await world.credentials()), timeoutMs: PATIENT_MS };
    const call = world.generate({}, options, other.model);
    await world.simulator.until(({ outcome }) => outcome === 'open');
    const figure = async (query: string) => Number((await admin.query(query)).rows[0].figure);
    // Wait for the background writes of the other meter, so that the answer is its only write.
    const unpublished = 'select count(*) as figure from outbox where published_at is null';
    await expect.poll(() => figure(unpublished)).toBe(0);
    await admin.query(`begin; select pg_advisory_xact_lock(${STORE_LOCK})`);
    // The freeze waits for the exclusive store lock and the answer for the shared one; background loops of a replica
    // may wait, too.
    const waiting = (mode: 'ExclusiveLock' | 'ShareLock') =>
      `select count(*) as figure from pg_locks where locktype = 'advisory' and not granted and mode = '${mode}'`;
    const { order: halt } = order(100);
    const ending = { ...halt, cause: FreezeCause.END, retention: HistoryRetention.RUN };
    const frozen = world.tab.freeze({ order: ending }, { timeoutMs: PATIENT_MS });
    await expect.poll(() => figure(waiting('ExclusiveLock'))).toBeGreaterThan(0);
    await world.simulator.until(({ outcome }) => outcome === 'answered');
    await expect.poll(() => figure(waiting('ShareLock'))).toBeGreaterThan(0);
    await admin.query('commit');
    await frozen;
    await call;
    const { rows } = await admin.query('select answer, purged, state from calls');
    // If the state is not `answered`, the freeze aborted the call before its answer was recorded, so nothing was
    // purged.
    expect(rows).toMatchObject([{ answer: null, purged: rows[0].state === 'answered' }]);
    expect((await world.generate()).error?.reason).toMatch(/^(ANSWER_PURGED|RUN_ENDED|FROZEN)$/);
  });

  it('never exceed max_in_flight together and leave no slot unused (SUP-3)', async () => {
    const held: (() => void)[] = [];
    let most = 0;
    await start({
      scripts: { hello: [{ text: 'Hi.', delay_ms: 20 }] },
      settings: 'max_in_flight: 3',
      // Holds each request until three are held. If a slot stays unused, the calls time out.
      beforeAnswer: async () => {
        const { promise, resolve } = Promise.withResolvers<void>();
        held.push(resolve);
        const open = world.simulator.requests().filter(({ outcome }) => outcome === 'open');
        most = Math.max(most, held.length + open.length);
        if (held.length === 3) for (const release of held.splice(0)) release();
        await promise;
      },
    });
    await world.openTab();
    const options = { ...(await world.credentials()), timeoutMs: PATIENT_MS };
    const results = await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        world.generate(
          { callId: `op-${index}` },
          options,
          index % 2 === 0 ? world.model : other.model,
        ),
      ),
    );
    expect(results.flatMap(({ error }) => error ?? [])).toEqual([]);
    expect(most).toBe(3);
    expect(world.simulator.requests()).toHaveLength(60);
  });

  it('serve agents in the ratio of their weights across replicas (SUP-3)', async () => {
    await start({
      scripts: { hello: [{ text: 'Hi.', delay_ms: 5 }] },
      settings: 'max_in_flight: 1',
    });
    const saturate = async (instance: string, priority: Priority, count: number) => {
      await world.openTab({ agent: { name: 'support', instance } });
      const options = await world.credentials(instance, { priority });
      const model = instance === 'normal' ? world.model : other.model;
      return Array.from({ length: count }, (_, index) =>
        world.generate({ callId: `op-${index}` }, options, model),
      );
    };
    const calls = [
      ...(await saturate('normal', Priority.NORMAL, 30)),
      ...(await saturate('background', Priority.BACKGROUND, 4)),
      ...(await saturate('critical', Priority.CRITICAL, 30)),
    ];
    const results = await Promise.all(calls);
    expect(results.flatMap(({ error }) => error ?? [])).toEqual([]);
    await expect.poll(() => world.events.length).toBe(128);
    const order = world.events
      .filter(({ name }) => name === 'LLM_START')
      .map(({ event }) => event.agent?.instance);
    const meanwhile = order.slice(order.indexOf('critical'), order.lastIndexOf('critical') + 1);
    const count = (instance: string) => meanwhile.filter((name) => name === instance).length;
    const ratio = count('critical') / count('normal');
    expect(ratio).toBeGreaterThan(4 * 0.7);
    expect(ratio).toBeLessThan(4 * 1.4);
  });

  it('reuse the slots of a dead replica (SUP-3, EM-7)', async () => {
    await start({
      scripts: { hello: [{ text: 'Lost.', delay_ms: 60_000 }, { text: 'Hi.' }] },
      settings: 'max_in_flight: 1',
    });
    await world.openTab();
    const third = await world.spawn();
    const lost = world.generate({ callId: 'op-1' }, await world.credentials(), third.model);
    await world.simulator.until(({ outcome }) => outcome === 'open');
    const waits = world.generate({ callId: 'op-2' });
    const repeat = world.generate({ callId: 'op-1' });
    await third.kill();
    expect(textOf(await waits)).toBe('Hi.');
    expect(textOf(await repeat)).toBe('Hi.');
    expect(await lost).toMatchObject({ finished: undefined });
    expect((await world.level(1)).usedTurns).toBe(3n);
  });
});
