import { UsageGroup } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { BudgetLevel, ReservationState, TabState } from '@writ/contracts/writ/meter/v1/tab_pb';
import { ManualClock } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AGENT, given, MeterWorld, RUN, TENANT } from './meter-fixture.ts';

let world: MeterWorld;
let clock: ManualClock;
beforeEach(async () => {
  clock = new ManualClock(new Date());
  world = await MeterWorld.start({ clock });
});
afterEach(() => world[Symbol.asyncDispose]());

const tab = { tenant: TENANT, runId: RUN, agentInstance: AGENT };
const reserve = (callId: string, tokens: bigint, costNanoUsd = 0n, turns = 1n) =>
  world.tab.reserve({ tab, callId, tokens, costNanoUsd, turns });
const settle = (callId: string, tokens: bigint, costNanoUsd = 0n) =>
  world.tab.settle({
    tab,
    callId,
    usage: { outputTokens: tokens },
    costNanoUsd,
    turns: 1n,
    model: 'external',
  });
const consume = (requestId: string, tokens: bigint) =>
  world.tab.consume({ tab, requestId, tokens, costNanoUsd: 0n, turns: 0n });

describe('OpenTab', () => {
  it('is idempotent, and rejects a different request with the same id', async () => {
    const first = await world.openTab({ budget: { maxTokens: 10n } });
    expect(first.tab).toMatchObject({ tenant: TENANT, runId: RUN, state: TabState.OPEN });
    const { commits } = world.meter;
    expect(await world.openTab({ budget: { maxTokens: 10n } })).toEqual(first);
    expect(world.meter.commits).toBe(commits);
    await expect(world.openTab({ budget: { maxTokens: 11n } })).rejects.toMatchObject({
      reason: 'REQUEST_ID_REUSED',
    });
    await expect(world.openTab({ requestId: 'open-2' })).rejects.toMatchObject({
      reason: 'TAB_EXISTS',
    });
  });

  it('sets the caps of the run once (EM-1)', async () => {
    await world.openTab({ runBudget: { maxTokens: 100n } });
    await world.openTab({ agent: { name: 'support', instance: 'child' } });
    expect((await world.level(BudgetLevel.RUN, 'child')).limit?.maxTokens).toBe(100n);
    await expect(
      world.openTab({
        agent: { name: 'support', instance: 'thief' },
        runBudget: { maxTokens: 1_000n },
      }),
    ).rejects.toMatchObject({ reason: 'RUN_BUDGET_ALREADY_SET' });
  });

  it('rejects negative caps and names the field (SYS-3)', async () => {
    await expect(world.openTab({ budget: { maxTokens: -1n } })).rejects.toMatchObject({
      kind: 'invalid_argument',
      message: expect.stringContaining('budget.max_tokens'),
    });
  });
});

describe('Consume', () => {
  it('books first and then reports the exceeded cap with used and limit (EM-2)', async () => {
    await world.openTab({ budget: { maxTokens: 4000n } });
    expect((await consume('c-1', 4000n)).tab?.totals?.usage?.inputTokens).toBe(4000n);
    const exceeded = {
      reason: 'BUDGET_EXHAUSTED',
      message: 'Token budget exceeded: 4200 > 4000',
      metadata: { dimension: 'tokens', used: '4200', limit: '4000' },
    };
    await expect(consume('c-2', 200n)).rejects.toMatchObject(exceeded);
    await expect(consume('c-2', 200n)).rejects.toMatchObject(exceeded);
    expect((await world.level(BudgetLevel.AGENT)).usedTokens).toBe(4200n);
    await expect(consume('c-2', 201n)).rejects.toMatchObject({ reason: 'REQUEST_ID_REUSED' });
    await expect
      .poll(() => world.events.map(({ name }) => name))
      .toEqual(['BUDGET_THRESHOLD', 'BUDGET_EXHAUSTED']);
  });

  it('is rejected for an unknown tab and for a closed tab', async () => {
    await expect(consume('c-1', 1n)).rejects.toMatchObject({ reason: 'TAB_NOT_FOUND' });
    await world.openTab();
    await world.tab.closeTab({ tab, requestId: 'close-1' });
    await expect(consume('c-1', 1n)).rejects.toMatchObject({ reason: 'TAB_CLOSED' });
  });
});

describe('Reserve, Settle and ReleaseReservation', () => {
  it('hold, settle and release on every level together (EM-3)', async () => {
    await world.openTab({ budget: { maxTokens: 100n } });
    const { reservation } = await reserve('r-1', 60n);
    expect(reservation).toMatchObject({ state: ReservationState.RESERVED, tokens: 60n });
    expect(await reserve('r-1', 60n)).toEqual({ ...(await reserve('r-1', 60n)) });
    await expect(reserve('r-1', 61n)).rejects.toMatchObject({ reason: 'CALL_ID_REUSED' });
    await expect(reserve('r-2', 41n)).rejects.toMatchObject({
      message: 'Token budget exceeded: 101 > 100',
      metadata: { fits_tokens: '40' },
    });
    for (const level of [BudgetLevel.AGENT, BudgetLevel.RUN, BudgetLevel.TENANT_MONTH]) {
      expect((await world.level(level)).reservedTokens).toBe(60n);
    }
    const settled = await settle('r-1', 30n);
    expect(settled.reservation).toMatchObject({ state: ReservationState.SETTLED, exceeded: false });
    expect(settled.tab?.totals).toMatchObject({ turns: 1n, usage: { outputTokens: 30n } });
    await reserve('r-2', 41n);
    await world.tab.releaseReservation({ tab, callId: 'r-2' });
    const again = await world.tab.releaseReservation({ tab, callId: 'r-2' });
    expect(again.reservation?.state).toBe(ReservationState.RELEASED);
    expect(await world.level(BudgetLevel.SESSION)).toMatchObject({
      usedTokens: 30n,
      reservedTokens: 0n,
    });
  });

  it('accept a repeated Settle request and reject a different Settle request (EM-3)', async () => {
    await world.openTab();
    await reserve('r-1', 60n);
    await settle('r-1', 30n);
    expect((await settle('r-1', 30n)).reservation?.state).toBe(ReservationState.SETTLED);
    await expect(settle('r-1', 31n)).rejects.toMatchObject({ reason: 'CALL_ID_REUSED' });
    expect((await world.level(BudgetLevel.AGENT)).usedTokens).toBe(30n);
  });

  it('record and flag a settlement above the reservation, which the next check includes (EM-3)', async () => {
    await world.openTab({ budget: { maxTokens: 100n } });
    await reserve('r-1', 60n);
    const { reservation } = await settle('r-1', 120n);
    expect(reservation?.exceeded).toBe(true);
    expect(await world.level(BudgetLevel.AGENT)).toMatchObject({
      usedTokens: 120n,
      debtTokens: 60n,
    });
    await expect(reserve('r-2', 0n)).rejects.toMatchObject({
      message: 'Token budget exceeded: 120 > 100',
    });
  });

  it('reject an impossible settlement or release with a specific reason', async () => {
    await world.openTab();
    const unknown = { reason: 'RESERVATION_NOT_FOUND' };
    await expect(settle('r-9', 1n)).rejects.toMatchObject(unknown);
    await expect(world.tab.releaseReservation({ tab, callId: 'r-9' })).rejects.toMatchObject(
      unknown,
    );
    await reserve('r-1', 5n);
    await expect(
      world.tab.settle({
        tab,
        callId: 'r-1',
        usage: { outputTokens: -5n },
        costNanoUsd: 0n,
        turns: 0n,
      }),
    ).rejects.toMatchObject({ reason: 'INVALID_USAGE' });
    await world.tab.releaseReservation({ tab, callId: 'r-1' });
    await expect(settle('r-1', 1n)).rejects.toMatchObject({ reason: 'RESERVATION_RELEASED' });
    await reserve('r-2', 5n);
    await settle('r-2', 5n);
    await expect(world.tab.releaseReservation({ tab, callId: 'r-2' })).rejects.toMatchObject({
      reason: 'RESERVATION_SETTLED',
    });
  });

  it('settle an expired reservation in full, marked as estimated (EM-3)', async () => {
    await world.openTab();
    await reserve('r-1', 60n, 7n, 1n);
    clock.advance(61_000);
    await expect.poll(async () => (await world.level(BudgetLevel.AGENT)).reservedTokens).toBe(0n);
    const { tab: after } = await world.tab.getTab({ tab });
    expect(after?.totals).toMatchObject({ costNanoUsd: 7n, turns: 1n, estimatedTurns: 1n });
    await settle('r-1', 10n, 3n);
    const { tab: corrected } = await world.tab.getTab({ tab });
    expect(corrected?.totals).toMatchObject({ costNanoUsd: 3n, turns: 1n, estimatedTurns: 0n });
  });

  it('accept late settlements on a closed tab (EM-3)', async () => {
    await world.openTab();
    await reserve('r-1', 60n);
    const closed = await world.tab.closeTab({ tab, requestId: 'close-1' });
    expect(closed.tab).toMatchObject({ state: TabState.CLOSED });
    await expect(reserve('r-2', 1n)).rejects.toMatchObject({ reason: 'TAB_CLOSED' });
    expect((await settle('r-1', 60n)).tab?.totals?.usage?.outputTokens).toBe(60n);
    const again = await world.tab.closeTab({ tab, requestId: 'close-2' });
    expect(again.tab?.closeTime).toEqual(closed.tab?.closeTime);
  });
});

describe('CloseTab with only_if_settled', () => {
  const closing = async () =>
    (await world.tab.closeTab({ tab, requestId: 'close-1', onlyIfSettled: true })).tab;

  it('leaves the tab open while a reservation is held, and closes it afterwards (EM-3, AG-7)', async () => {
    await world.openTab();
    await reserve('r-1', 0n);
    expect((await closing())?.state).toBe(TabState.OPEN);
    await settle('r-1', 0n);
    expect((await closing())?.state).toBe(TabState.CLOSED);
    await expect(reserve('r-2', 1n)).rejects.toMatchObject({ reason: 'TAB_CLOSED' });
  });

  it('books nothing to a closed tab when a model call begins at the same time (EM-3, AG-7)', async () => {
    await world.openTab();
    const [{ error }, closed] = await Promise.all([world.generate(), closing()]);
    const { tab: after } = await world.tab.getTab({ tab });
    const isClosed = closed?.state === TabState.CLOSED;
    if (isClosed) expect(after?.totals).toEqual(closed.totals);
    expect(error?.reason).toBe(isClosed && after?.totals?.turns === 0n ? 'TAB_CLOSED' : undefined);
    expect((await world.level(BudgetLevel.AGENT)).reservedTokens).toBe(0n);
    expect((await closing())?.state).toBe(TabState.CLOSED);
  });
});

describe('QueryUsage', () => {
  const query = (groupBy: UsageGroup[], more: object = {}) =>
    world.tab.queryUsage({ tenant: TENANT, groupBy, ...more });

  it('sums by agent, run, session, tenant, model and day (EM-10)', async () => {
    await world.openTab();
    await world.openTab({ agent: { name: 'support', instance: 'child' } });
    await world.generate();
    await world.generate({ callId: 'op-2' });
    await world.generate({}, await world.credentials('child'));
    await reserve('r-1', 5n);
    await settle('r-1', 5n, 500n);
    const total = (await query([])).rows;
    expect(total).toHaveLength(1);
    expect(total[0]?.totals?.turns).toBe(4n);
    const byAgent = await query([UsageGroup.AGENT]);
    expect(byAgent.rows.map(({ agent, totals }) => [agent?.instance, totals?.turns])).toEqual([
      ['child', 1n],
      [AGENT, 3n],
    ]);
    const byModel = await query([UsageGroup.MODEL, UsageGroup.RUN], { agentInstance: AGENT });
    expect(byModel.rows.map(({ model, runId, totals }) => [model, runId, totals?.turns])).toEqual([
      ['external', RUN, 1n],
      ['hello', RUN, 2n],
    ]);
    const day = clock.now().toISOString().slice(0, 10);
    expect((await query([UsageGroup.DAY, UsageGroup.SESSION])).rows[0]).toMatchObject({
      day,
      sessionId: 'session-1',
    });
    const [ofTenant] = (await query([UsageGroup.TENANT])).rows;
    expect(ofTenant).toMatchObject({ tenant: TENANT, totals: { turns: 4n } });
    expect((await query([], { runId: 'run-2' })).rows).toEqual([]);
  });

  it('returns pages and rejects the page token of another query (EM-10)', async () => {
    for (const instance of ['a', 'b', 'c']) {
      await world.openTab({ agent: { name: 'support', instance } });
      await world.generate({}, await world.credentials(instance));
    }
    const first = await query([UsageGroup.AGENT], { pageSize: 2 });
    expect(first.rows.map(({ agent }) => agent?.instance)).toEqual(['a', 'b']);
    const second = await query([UsageGroup.AGENT], { pageSize: 2, pageToken: first.nextPageToken });
    expect(second.rows.map(({ agent }) => agent?.instance)).toEqual(['c']);
    expect(second.nextPageToken).toBe('');
    await expect(query([UsageGroup.RUN], { pageToken: first.nextPageToken })).rejects.toMatchObject(
      { reason: 'INVALID_PAGE_TOKEN' },
    );
  });
});

it('lists open tabs by agent, a page at a time (BD-3)', async () => {
  for (const instance of ['b', 'a', 'c']) {
    await world.openTab({ agent: { name: 'support', instance } });
  }
  const { tabs: first } = await world.tab.listOpenTabs({ pageSize: 2 });
  expect(first).toMatchObject([
    { ...tab, agentInstance: 'a' },
    { ...tab, agentInstance: 'b' },
  ]);
  const { tabs: rest } = await world.tab.listOpenTabs({ pageSize: 2, after: given(first[1]) });
  expect(rest).toMatchObject([{ ...tab, agentInstance: 'c' }]);
});

it('returns a worker only the tab of its own agent (EM-6)', async () => {
  await world.openTab();
  const { ExecutionMeterService } = await import(
    '@writ/contracts/writ/meter/v1/execution_meter_service_pb'
  );
  const worker = world.worker.client(ExecutionMeterService, {
    audience: 'execution-meter',
    address: world.meter.address,
  });
  const options = await world.credentials();
  expect(given((await worker.getTab({}, options)).tab).agent?.instance).toBe(AGENT);
  await expect(
    worker.getTab({ tab: { ...tab, agentInstance: 'other' } }, options),
  ).rejects.toMatchObject({ reason: 'TAB_WRONG_OWNER' });
  await expect(worker.closeTab({ tab, requestId: 'x' }, options)).rejects.toMatchObject({
    reason: 'CALLER_NOT_ALLOWED',
  });
});
