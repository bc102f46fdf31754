import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { FreezeCause, type ScopeSchema } from '@writ/contracts/writ/control/v1/freeze_pb';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import { Dialect } from '@writ/contracts/writ/model/v1/model_pb';
import { ManualClock } from '@writ/kernel';
import { afterEach, describe, expect, it } from 'vitest';
import { AGENT, MeterWorld, type MeterWorldOptions, RUN, TENANT } from './meter-fixture.ts';
import { type Init, textOf } from './model-calls.ts';

let world: MeterWorld;
const start = async (options?: MeterWorldOptions): Promise<MeterWorld> => {
  world = await MeterWorld.start(options);
  await world.openTab();
  return world;
};
afterEach(() => world[Symbol.asyncDispose]());

/** An answer slow enough that its call is still in flight when a busy machine aborts the call. */
const SLOW: MeterWorldOptions = {
  scripts: {
    hello: [
      { text: 'A long answer, piece by piece.', chunk_size: 4, chunk_delay_ms: 2_000 },
      { text: 'Again.' },
    ],
  },
};
/** Maximum number of attempts to freeze a call that is still in flight when Freeze returns. */
const FREEZES = 20;
const untilInFlight = () => world.simulator.until(({ outcome }) => outcome === 'open');
const aborted = () => world.simulator.until(({ outcome }) => outcome === 'aborted');
const ended = () => expect.poll(async () => (await world.level(BudgetLevel.AGENT)).reservedTokens);

describe('a caller that disconnects', () => {
  it('closes the connection to the provider and leaves a settled, estimated entry (SUP-8, EM-8)', async () => {
    await start(SLOW);
    const stop = new AbortController();
    const call = world.generate(
      { deltas: true },
      { ...(await world.credentials()), signal: stop.signal },
    );
    await untilInFlight();
    stop.abort();
    expect((await call).error?.kind).toBe('cancelled');
    await aborted();
    await ended().toBe(0n);
    const level = await world.level(BudgetLevel.AGENT);
    expect(level.usedTurns).toBe(1n);
    expect(level.usedTokens).toBeGreaterThan(0n);
    const { tab } = await world.tab.getTab({
      tab: { tenant: TENANT, runId: RUN, agentInstance: AGENT },
    });
    expect(tab?.totals?.estimatedTurns).toBe(1n);
    await expect
      .poll(() => world.events.map(({ name, event }) => `${name} ${event.status}`))
      .toEqual(['LLM_START ok', 'LLM_END interrupted']);
  });

  it('is charged the full reservation of a native answer without streaming (EM-3, EM-6)', async () => {
    await start({ scripts: { hello: [{ text: 'Late.', delay_ms: 60_000 }] } });
    const stop = new AbortController();
    const body = { messages: [{ role: 'user', content: 'Hello.' }], stream: false };
    const native = { dialect: Dialect.OPENAI_CHAT, bodyJson: Buffer.from(JSON.stringify(body)) };
    const call = world.generate(
      { messages: [], native },
      { ...(await world.credentials()), signal: stop.signal },
    );
    await untilInFlight();
    const { reservedTokens, reservedCostNanoUsd } = await world.level(BudgetLevel.AGENT);
    stop.abort();
    await call;
    await aborted();
    await ended().toBe(0n);
    expect(await world.level(BudgetLevel.AGENT)).toMatchObject({
      usedTokens: reservedTokens,
      usedCostNanoUsd: reservedCostNanoUsd,
    });
    const [span] = world.spans.spans().filter(({ name }) => name === 'chat sim:hello');
    expect(span?.attributes['gen_ai.request.stream']).toBe(false);
  });

  it('gets a call duration that excludes a step of the clock (HK-1, BD-3)', async () => {
    const clock = new ManualClock(new Date());
    await start({ ...SLOW, clock });
    const stop = new AbortController();
    const call = world.generate({}, { ...(await world.credentials()), signal: stop.signal });
    await untilInFlight();
    clock.advance(5_000);
    clock.step(30_000);
    stop.abort();
    await call;
    await expect
      .poll(() => world.events.map(({ name, event }) => [name, event.duration?.seconds]))
      .toEqual([
        ['LLM_START', undefined],
        ['LLM_END', 5n],
      ]);
  });

  it('gets attempt 2 when it repeats the call, even while attempt 1 is being aborted (EM-7)', async () => {
    await start(SLOW);
    const stop = new AbortController();
    const call = world.generate({}, { ...(await world.credentials()), signal: stop.signal });
    await untilInFlight();
    stop.abort();
    await call;
    const again = await world.generate();
    expect(textOf(again)).toBe('Again.');
    expect(again.finished).toMatchObject({ attempts: 2, estimated: true, replayed: false });
  });

  it('does not affect another caller of the same call (EM-7)', async () => {
    await start({
      scripts: { hello: [{ text: 'For both.', chunk_size: 4, chunk_delay_ms: 500 }] },
    });
    const stop = new AbortController();
    const stopped = { ...(await world.credentials()), signal: stop.signal };
    const cancelled = world.generate({ deltas: true }, stopped);
    const joined = Promise.withResolvers<void>();
    const credentials = await world.credentials();
    const other = world.generate({ deltas: true }, credentials, world.model, joined.resolve);
    await joined.promise;
    stop.abort();
    await cancelled;
    expect(textOf(await other)).toBe('For both.');
    expect(world.simulator.requests()).toHaveLength(1);
  });

  it('aborts the provider request when the deadline of the call passes (SUP-5)', async () => {
    await start({ scripts: { hello: [{ text: 'Late.', delay_ms: 60_000 }, { text: 'Again.' }] } });
    // A busy machine can need longer to reach the provider.
    for (let timeoutMs = 400; world.simulator.requests().length === 0; timeoutMs *= 2) {
      const late = await world.generate({}, { ...(await world.credentials()), timeoutMs });
      expect(late.error?.kind).toBe('deadline_exceeded');
    }
    await aborted();
    await ended().toBe(0n);
    expect(textOf(await world.generate())).toBe('Again.');
  });
});

describe('a freeze', () => {
  const order = (scope: Init<typeof ScopeSchema>, cause: FreezeCause, orderId = 'order-1') => ({
    order: { orderId, scope, cause, reason: 'Stop it.', orderedBy: 'mia' },
  });
  const run: Init<typeof ScopeSchema> = {
    kind: { case: 'run', value: { tenant: TENANT, runId: RUN } },
  };
  const scopes: readonly (readonly [string, Init<typeof ScopeSchema>])[] = [
    ['everything', { kind: { case: 'everything', value: {} } }],
    ['the tenant', { kind: { case: 'tenant', value: TENANT } }],
    ['the run', run],
    [
      'the agent',
      {
        kind: { case: 'agent', value: { tenant: TENANT, runId: RUN, agentInstance: AGENT } },
      },
    ],
  ];

  it.each(scopes)(
    'of %s rejects calls and reservations until it is lifted (SV-9)',
    async (_, scope) => {
      await start();
      await world.tab.freeze(order(scope, FreezeCause.HALT));
      const halted = await world.generate();
      expect(halted.error).toMatchObject({ reason: 'HALTED', message: 'Halted by mia: Stop it.' });
      const tab = { tenant: TENANT, runId: RUN, agentInstance: AGENT };
      await expect(
        world.tab.reserve({ tab, callId: 'r-1', tokens: 1n, costNanoUsd: 0n, turns: 0n }),
      ).rejects.toMatchObject({ reason: 'HALTED' });
      expect(world.simulator.requests()).toHaveLength(0);
      expect(await world.tab.unfreeze({ orderId: 'order-1' })).toMatchObject({ lifted: true });
      expect(await world.tab.unfreeze({ orderId: 'order-1' })).toMatchObject({ lifted: false });
      expect((await world.generate()).error).toBeUndefined();
    },
  );

  it('does not affect other runs, and is lifted only by its own order id (SV-9)', async () => {
    await start();
    const other = { kind: { case: 'run' as const, value: { tenant: TENANT, runId: 'run-2' } } };
    await world.tab.freeze(order(other, FreezeCause.HALT, 'other'));
    expect((await world.generate()).error).toBeUndefined();
    await world.tab.freeze(order(run, FreezeCause.HALT, 'one'));
    await world.tab.freeze(order(run, FreezeCause.CANCEL, 'two'));
    await world.tab.unfreeze({ orderId: 'one' });
    expect((await world.generate({ callId: 'op-2' })).error).toMatchObject({ reason: 'FROZEN' });
    await expect(world.tab.freeze(order(other, FreezeCause.HALT, 'two'))).rejects.toMatchObject({
      reason: 'REQUEST_ID_REUSED',
    });
  });

  it('aborts calls in flight and answers after their settlement (SUP-8)', async () => {
    await start(SLOW);
    const call = world.generate({ deltas: true });
    await untilInFlight();
    const { inFlight } = await world.tab.freeze(order(run, FreezeCause.HALT));
    expect(inFlight).toEqual([]);
    expect(await world.level(BudgetLevel.AGENT)).toMatchObject({
      reservedTokens: 0n,
      usedTurns: 1n,
    });
    const { finished, error } = await call;
    expect(finished?.failure).toMatchObject({ stopReason: 'cancelled', reason: 'HALTED' });
    expect(error).toMatchObject({ reason: 'HALTED' });
    await aborted();
  });

  it('lists calls in flight at the end of its wait (SV-9)', async () => {
    const held = { text: 'A long answer, piece by piece.', chunk_size: 4, chunk_delay_ms: 2_000 };
    await start({ scripts: { hello: [held] } });
    // On a busy machine an aborted call may be settled before the calls are listed.
    for (let n = 1; n <= FREEZES; n += 1) {
      const callId = `op-${n}`;
      const call = world.generate({ callId });
      await untilInFlight();
      const { order: asked } = order(run, FreezeCause.HALT, `order-${n}`);
      const wait = { seconds: 0n, nanos: 0 };
      const { inFlight } = await world.tab.freeze({ order: { ...asked, wait } });
      await call;
      const again = await world.tab.freeze({ order: asked });
      expect(again.inFlight).toEqual([]);
      if (inFlight.length > 0 || n === FREEZES) {
        expect(inFlight).toMatchObject([{ callId, agentInstance: AGENT, target: 'hello' }]);
        return;
      }
      await aborted();
      await world.tab.unfreeze({ orderId: asked.orderId });
    }
  });

  it('rejects queued calls (SUP-8)', async () => {
    await start({ ...SLOW, settings: 'max_in_flight: 1' });
    const calls = [world.generate(), world.generate({ callId: 'op-2' })];
    await untilInFlight();
    await world.tab.freeze(order(run, FreezeCause.CANCEL));
    for (const { error } of await Promise.all(calls)) {
      expect(error).toMatchObject({ reason: 'FROZEN' });
    }
    expect(world.simulator.requests()).toHaveLength(1);
  });
});

it('aborts a call at the deadline of the run and rejects later calls (SUP-8, EM-1)', async () => {
  const withinMs = async (ms: number) => {
    world = await MeterWorld.start(SLOW);
    await world.openTab({ deadline: timestampFromMs(Date.now() + ms) });
    return await world.generate();
  };
  let ms = 100;
  let late = await withinMs(ms);
  // A busy machine can need longer to reach the provider.
  while (world.simulator.requests().length === 0) {
    await world[Symbol.asyncDispose]();
    ms *= 2;
    late = await withinMs(ms);
  }
  const { finished, error } = late;
  expect(finished?.failure).toMatchObject({ stopReason: 'cancelled', reason: 'DEADLINE_EXCEEDED' });
  expect(error?.kind).toBe('deadline_exceeded');
  await aborted();
  const next = await world.generate({ callId: 'op-2' });
  expect(next.error).toMatchObject({ reason: 'DEADLINE_EXCEEDED' });
  expect(world.simulator.requests()).toHaveLength(1);
});

describe('a meter that shuts down', () => {
  it('settles calls in flight before it closes, and a repeat makes the next attempt (EM-7)', async () => {
    await start({ ...SLOW, file: true });
    const call = world.generate();
    await untilInFlight();
    await world.meter.stop();
    expect((await call).error).toMatchObject({ kind: 'unavailable' });
    await world.boot();
    expect(await world.level(BudgetLevel.AGENT)).toMatchObject({
      reservedTokens: 0n,
      usedTurns: 1n,
    });
    expect((await world.generate()).finished?.attempts).toBe(2);
  });
});
