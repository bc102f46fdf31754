import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import { Fit } from '@writ/contracts/writ/model/v1/model_pb';
import { ManualClock } from '@writ/kernel';
import { afterEach, describe, expect, it } from 'vitest';
import { AGENT, given, MeterWorld, type MeterWorldOptions, RUN, TENANT } from './meter-fixture.ts';

let world: MeterWorld;
const start = async (options?: MeterWorldOptions): Promise<MeterWorld> => {
  world = await MeterWorld.start(options);
  return world;
};
afterEach(() => world[Symbol.asyncDispose]());

const HOUR_MS = 3_600_000;
const tabOf = (runId: string) => ({ tenant: TENANT, runId, agentInstance: AGENT });
const reserve = (runId: string, callId: string, tokens: bigint, turns = 0n) =>
  world.tab.reserve({ tab: tabOf(runId), callId, tokens, costNanoUsd: 0n, turns });
const support = (instance: string) => ({ agent: { name: 'support', instance } });

describe('a cap', () => {
  it('is never exceeded by 200 concurrent calls, and nothing stays reserved (EM-3)', async () => {
    const usage = { prompt_tokens: 40, completion_tokens: 60 };
    await start({
      scripts: { hello: [{ text: 'Hi.', usage, delay_ms: 2 }] },
      settings: 'max_in_flight: 16',
    });
    const cap = 2_000n;
    await world.openTab({ runBudget: { maxTokens: cap } });
    const options = await world.credentials();
    let highest = 0n;
    let watching = true;
    const watch = (async () => {
      while (watching) {
        const { usedTokens, reservedTokens } = await world.level(BudgetLevel.RUN);
        if (usedTokens + reservedTokens > highest) highest = usedTokens + reservedTokens;
      }
    })();
    const all = await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        world.generate({ callId: `op-${index}` }, { ...options, timeoutMs: 90_000 }),
      ),
    );
    watching = false;
    await watch;
    const answered = all.filter(({ error }) => error === undefined).length;
    expect(highest).toBeLessThanOrEqual(cap);
    expect(answered).toBeGreaterThan(0);
    expect(answered).toBeLessThanOrEqual(20);
    expect(world.simulator.requests()).toHaveLength(answered);
    for (const { error, finished } of all.filter(({ error }) => error !== undefined)) {
      expect(error).toMatchObject({ reason: 'BUDGET_EXHAUSTED', kind: 'resource_exhausted' });
      expect(finished?.failure?.stopReason).toBe('budget_exhausted:tokens');
    }
    expect(await world.level(BudgetLevel.RUN)).toMatchObject({
      usedTokens: BigInt(answered) * 100n,
      reservedTokens: 0n,
      reservedCostNanoUsd: 0n,
      reservedTurns: 0n,
      debtTokens: 0n,
    });
  });

  it('of the run applies to all its agents together (EM-1)', async () => {
    await start();
    await world.openTab({ runBudget: { maxTurns: 1n } });
    await world.openTab(support('child'));
    expect((await world.generate()).error).toBeUndefined();
    const { error } = await world.generate({}, await world.credentials('child'));
    expect(error).toMatchObject({
      reason: 'BUDGET_EXHAUSTED',
      metadata: { dimension: 'turns', level: 'run', stop_reason: 'budget_exhausted:turns' },
    });
    expect(error?.message).toBe('Turn budget exceeded: 2 > 1 (the whole run)');
  });

  it('of the session applies to all its runs together and warns before it is reached (EM-3, EM-5)', async () => {
    await start();
    await world.openTab({ sessionBudget: { maxTokens: 600n } });
    await world.openTab({ runId: 'run-2' });
    await reserve(RUN, 'op-1', 500n);
    await expect(reserve('run-2', 'op-1', 101n)).rejects.toMatchObject({
      message: 'Token budget exceeded: 601 > 600 (the session)',
      metadata: { dimension: 'tokens', level: 'session', fits_tokens: '100' },
    });
    expect(await world.level(BudgetLevel.SESSION)).toMatchObject({ nearBudget: false });
    await world.tab.settle({
      tab: tabOf(RUN),
      callId: 'op-1',
      usage: { inputTokens: 88n },
      costNanoUsd: 0n,
      turns: 0n,
    });
    expect(await world.level(BudgetLevel.SESSION)).toMatchObject({ nearBudget: true });
    await reserve('run-2', 'op-2', 512n);
  });

  it('of a tenant applies per UTC day and month (EM-3)', async () => {
    const clock = new ManualClock(new Date('2026-03-31T23:00:00Z'));
    const caps = 'day: { max_turns: 1 }, month: { max_turns: 2 }';
    await start({ clock, tenants: `tenants: { "*": { ${caps} } }` });
    await world.openTab();
    const turn = (callId: string) => reserve(RUN, callId, 0n, 1n);
    await turn('march');
    await expect(turn('more')).rejects.toMatchObject({ metadata: { level: 'tenant_day' } });
    expect(await world.level(BudgetLevel.TENANT_DAY)).toMatchObject({ limit: { maxTurns: 1n } });
    clock.advance(2 * HOUR_MS);
    await turn('april-1');
    clock.advance(24 * HOUR_MS);
    await turn('april-2');
    clock.advance(24 * HOUR_MS);
    await expect(turn('april-3')).rejects.toMatchObject({
      message: 'Turn budget exceeded: 3 > 2 (the tenant this month)',
    });
  });

  it('reports how many output tokens fit, and on request reduces max_output_tokens to this number (EM-3)', async () => {
    await start({
      scripts: { hello: [{ text: 'Hi.', usage: { prompt_tokens: 5, completion_tokens: 5 } }] },
    });
    await world.openTab({ budget: { maxTokens: 90n } });
    const refused = await world.generate({ maxOutputTokens: 80n });
    const fits = BigInt(given(refused.error?.metadata.fits_output_tokens));
    expect(fits).toBeGreaterThan(0n);
    expect(fits).toBeLessThan(80n);
    expect(refused.error?.message).toMatch(/^Token budget exceeded: \d+ > 90; max_output_tokens/);
    expect(world.simulator.requests()).toHaveLength(0);
    const shrunk = await world.generate({ maxOutputTokens: 80n, fit: Fit.SHRINK, callId: 'op-2' });
    expect(shrunk.error).toBeUndefined();
    expect(shrunk.finished?.fittedMaxOutputTokens).toBe(fits);
  });

  it('on cost counts cached and reasoning tokens exactly, in nano-USD (EM-4, EM-5)', async () => {
    const usage = {
      prompt_tokens: 48,
      completion_tokens: 50,
      cached_tokens: 40,
      reasoning_tokens: 10,
    };
    await start({
      scripts: { hello: [{ text: 'Hi.', usage }] },
      settings: [
        'prices:',
        '      input_per_million_usd: "0.40"',
        '      cached_input_per_million_usd: "0.10"',
        '      output_per_million_usd: "1.60"',
        '      reasoning_per_million_usd: "3.20"',
      ].join('\n'),
    });
    await world.openTab({ budget: { maxCostNanoUsd: 500_000n } });
    const { finished } = await world.generate();
    expect(finished?.costNanoUsd).toBe(8n * 400n + 40n * 100n + 40n * 1_600n + 10n * 3_200n);
    expect(finished?.nearBudget).toBe(false);
  });

  it('counts a refusal as a failure of the tab and emits an event (HK-1)', async () => {
    await start();
    await world.openTab({ budget: { maxTurns: 0n } });
    await world.generate();
    await world.generate();
    const { tab } = await world.tab.getTab({
      tab: { tenant: TENANT, runId: RUN, agentInstance: 'support-1' },
    });
    expect(tab?.failures).toMatchObject([{ stopReason: 'budget_exhausted:turns', count: 1n }]);
    await expect.poll(() => world.events).toHaveLength(1);
    expect(world.events[0]).toMatchObject({
      name: 'BUDGET_EXHAUSTED',
      event: { dimension: 'turns', callId: 'op-1' },
    });
  });
});

it('publishes a refusal, a debt and an exceeded consumption with the same id as three events (HK-1, HK-2)', async () => {
  await start();
  await world.openTab({ runBudget: { maxTokens: 100n } });
  const exhausted = { reason: 'BUDGET_EXHAUSTED' };
  await expect(reserve(RUN, 'op-1', 150n)).rejects.toMatchObject(exhausted);
  await world.tab.setCaps({
    requestId: 'raise',
    tenant: TENANT,
    level: BudgetLevel.RUN,
    runId: RUN,
    caps: { maxTokens: 200n },
    setBy: 'anna',
  });
  await reserve(RUN, 'op-1', 150n);
  const usage = { outputTokens: 250n };
  await world.tab.settle({ tab: tabOf(RUN), callId: 'op-1', usage, costNanoUsd: 0n, turns: 1n });
  const consumption = { tab: tabOf(RUN), requestId: 'op-1', tokens: 50n };
  await expect(world.tab.consume(consumption)).rejects.toMatchObject(exhausted);
  const published = () => world.events.filter(({ name }) => name === 'BUDGET_EXHAUSTED');
  await expect.poll(() => published().map(({ event }) => event.callId)).toHaveLength(3);
  expect(new Set(published().map(({ event }) => event.eventId)).size).toBe(3);
});

it('publishes each threshold of a cap once, with the level that reached it (EM-5, HK-1)', async () => {
  await start();
  await world.openTab({ budget: { maxTurns: 4n }, runBudget: { maxTurns: 4n } });
  const thresholds = () =>
    world.events
      .filter(({ name }) => name === 'BUDGET_THRESHOLD')
      .map(({ event }) => [event.budgetLevel, event.dimension, event.thresholdPercent]);
  const consume = (requestId: string, turns: bigint) =>
    world.tab.consume({
      tab: { tenant: TENANT, runId: RUN, agentInstance: 'support-1' },
      requestId,
      turns,
    });
  await consume('c-1', 1n);
  await consume('c-2', 1n);
  await consume('c-2', 1n);
  const half = [BudgetLevel.RUN, 'turns', 50];
  await expect.poll(thresholds).toEqual([half]);
  // A consumption that passes two thresholds publishes only the higher one.
  await consume('c-3', 2n);
  const full = [BudgetLevel.RUN, 'turns', 100];
  await expect.poll(thresholds).toEqual([half, full]);
});

it('publishes the threshold of a day even if a settlement after midnight has just reached the threshold of the previous day (EM-5, HK-1)', async () => {
  const clock = new ManualClock(new Date('2026-03-31T23:59:00Z'));
  await start({ clock, tenants: 'tenants: { "*": { day: { max_turns: 2 } } }' });
  await world.openTab();
  const settle = (callId: string) =>
    world.tab.settle({ tab: tabOf(RUN), callId, usage: {}, costNanoUsd: 0n, turns: 1n });
  await reserve(RUN, 'before', 0n, 1n);
  clock.advance(120_000);
  await settle('before');
  await reserve(RUN, 'after', 0n, 1n);
  await settle('after');
  await expect
    .poll(() => world.events.map(({ name, event }) => [name, event.callId, event.budgetLevel]))
    .toEqual([
      ['BUDGET_THRESHOLD', 'before', BudgetLevel.TENANT_DAY],
      ['BUDGET_THRESHOLD', 'after', BudgetLevel.TENANT_DAY],
    ]);
});

it('prices models without catalog prices from the maintained list (EM-4)', async () => {
  await start({
    scripts: { hello: [{ text: 'Hi.', usage: { prompt_tokens: 10, completion_tokens: 10 } }] },
    settings: 'prices: { input_per_million_usd: "9" }\n    priced_as: gpt-4.1-mini',
  });
  await world.openTab();
  expect((await world.generate()).finished?.costNanoUsd).toBe(10n * 9_000n + 10n * 1_600n);
});
