import type { MessageInitShape } from '@bufbuild/protobuf';
import { type DurationSchema, durationFromMs } from '@bufbuild/protobuf/wkt';
import { FreezeCause, type ScopeSchema } from '@writ/contracts/writ/control/v1/freeze_pb';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Fixture, startFixture } from './gateway-fixture.ts';
import { type Received, serveAnswers } from './mcp/answering-server.ts';
import { keyOf } from './test-call.ts';
import { failsOnAbort, held, neverReturns } from './world.ts';

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
});

afterEach(() => fixture[Symbol.asyncDispose]());

/** Wait time of a freeze order; it expires before a call that ignores its cancellation has ended. */
const BRIEFLY = durationFromMs(30);

type Scope = MessageInitShape<typeof ScopeSchema>;

interface Order {
  readonly orderId?: string;
  readonly scope?: Scope;
  readonly cause?: FreezeCause;
  readonly retention?: HistoryRetention;
  readonly wait?: MessageInitShape<typeof DurationSchema>;
}

function order(over: Order = {}) {
  return {
    orderId: 'halt_1',
    scope: { kind: { case: 'run', value: { tenant: 'acme', runId: 'run_1' } } } as Scope,
    cause: FreezeCause.HALT,
    reason: 'It pays too much.',
    orderedBy: 'olga',
    wait: durationFromMs(5_000),
    ...over,
  };
}

const halted = { kind: 'failed_precondition', reason: 'HALTED' };

describe('Freeze (SV-9)', () => {
  it('rejects calls and neither issues a receipt nor burns them (TG-8)', async () => {
    await fixture.asSupervisor.freeze({ order: order() });
    const before = fixture.gateway.store.commits;
    await expect(fixture.call({ writ: { maxToolCalls: 1 } })).rejects.toMatchObject({
      ...halted,
      message: 'Halted by olga: It pays too much.',
    });
    expect(fixture.gateway.store.commits).toBe(before);
    await fixture.asSupervisor.unfreeze({ orderId: 'halt_1' });
    const answer = await fixture.call({ writ: { maxToolCalls: 1 } });
    expect(answer).toMatchObject({ status: CallStatus.OK, replayed: false });
    expect(fixture.world.executions).toHaveLength(1);
  });

  it('is checked after the other checks: a call that fails them is refused with a receipt (TG-2)', async () => {
    await fixture.asSupervisor.freeze({ order: order() });
    expect(await fixture.call({ args: {} })).toMatchObject({ stopReason: 'tool_bad_args:pay' });
  });

  it('returns recorded outcomes to repeats', async () => {
    const first = await fixture.call();
    await fixture.asSupervisor.freeze({ order: order() });
    expect(await fixture.call()).toMatchObject({ receipt: first.receipt });
  });

  it.each<[string, Scope]>([
    ['everything', { kind: { case: 'everything', value: {} } }],
    ['a tenant', { kind: { case: 'tenant', value: 'acme' } }],
    [
      'an agent',
      {
        kind: {
          case: 'agent',
          value: { tenant: 'acme', runId: 'run_1', agentInstance: 'payer-1' },
        },
      },
    ],
  ])('freezes exactly its scope (%s), and stays in force after a restart', async (name, scope) => {
    await fixture.asSupervisor.freeze({ order: order({ scope, cause: FreezeCause.CANCEL }) });
    await fixture.crash();
    await expect(fixture.call()).rejects.toMatchObject({ reason: 'FROZEN' });
    const otherTenant = fixture.call({ tenant: 'other', callId: 'op-2' });
    if (name === 'everything')
      await expect(otherTenant).rejects.toMatchObject({ reason: 'FROZEN' });
    else expect(await otherTenant).toMatchObject({ status: CallStatus.OK });
    const sibling = fixture.call({ agent: 'payer-2', callId: 'op-2' });
    if (name === 'an agent') expect(await sibling).toMatchObject({ status: CallStatus.OK });
    else await expect(sibling).rejects.toMatchObject({ reason: 'FROZEN' });
  });

  it('keeps orders independent: lifting an order does not lift another one, and a repeated order changes nothing', async () => {
    const { asSupervisor } = fixture;
    await asSupervisor.freeze({ order: order() });
    await asSupervisor.freeze({ order: order() });
    await asSupervisor.freeze({ order: order({ orderId: 'end_1', cause: FreezeCause.END }) });
    expect(await asSupervisor.unfreeze({ orderId: 'halt_1' })).toMatchObject({ lifted: true });
    expect(await asSupervisor.unfreeze({ orderId: 'halt_1' })).toMatchObject({ lifted: false });
    expect(await asSupervisor.unfreeze({ orderId: 'halt_9' })).toMatchObject({ lifted: false });
    await expect(fixture.call()).rejects.toMatchObject({ reason: 'FROZEN' });
    // A late repeat of a lifted order has no effect.
    await asSupervisor.unfreeze({ orderId: 'end_1' });
    await asSupervisor.freeze({ order: order() });
    expect(await fixture.call()).toMatchObject({ status: CallStatus.OK });
    await expect(
      asSupervisor.freeze({ order: order({ scope: { kind: { case: 'tenant', value: 'acme' } } }) }),
    ).rejects.toMatchObject({ reason: 'REQUEST_ID_REUSED' });
  });

  it('cancels an idempotent call in flight without burning it; the call runs again after the freeze', async () => {
    fixture.world.on('charge', failsOnAbort);
    const running = fixture.call({ tool: 'charge' });
    const refused = expect(running).rejects.toMatchObject(halted);
    await fixture.world.executed(1);
    expect(await fixture.asSupervisor.freeze({ order: order() })).toMatchObject({ inFlight: [] });
    await refused;
    await expect(fixture.call({ tool: 'charge' })).rejects.toMatchObject(halted);
    await fixture.asSupervisor.unfreeze({ orderId: 'halt_1' });
    fixture.world.on('charge', async () => ({ status: 'ok' }));
    expect(await fixture.call({ tool: 'charge' })).toMatchObject({ status: CallStatus.OK });
  });

  it('cancels a destructive tool, whose outcome is then unknown (TG-5)', async () => {
    fixture.world.on('pay', failsOnAbort);
    const running = fixture.call();
    await fixture.world.executed(1);
    await fixture.asSupervisor.freeze({ order: order() });
    expect(await running).toMatchObject({
      status: CallStatus.UNKNOWN,
      stopReason: 'outcome_unknown:pay',
    });
  });

  it('cancels a call that waits for the connection to its MCP server; its outcome is known (TG-5)', async () => {
    const connects: Received[] = [];
    const { url, names } = await serveAnswers((received) => {
      if (received.name !== 'initialize') return false;
      // The first attempt fails, so the gateway starts without the connection and retries later.
      if (connects.push(received) === 1) received.response.writeHead(503).end();
      return true;
    });
    const waiting = await startFixture({
      tools: { shop__pay: { side_effect: 'destructive', source: 'shop' } },
      sources: { shop: { kind: 'mcp', url } },
    });
    try {
      await expect.poll(() => connects.length).toBe(2);
      const running = waiting.call({ tool: 'shop__pay' });
      const calls = waiting.gateway.store.db.selectFrom('calls').selectAll();
      await expect.poll(() => calls.execute()).toHaveLength(1);
      await waiting.asSupervisor.freeze({ order: order({ wait: BRIEFLY }) });
      connects[1]?.reply();
      expect(await running).toMatchObject({
        status: CallStatus.ERROR,
        stopReason: 'tool_error:shop__pay',
        message: 'shop__pay was cancelled before it started.',
      });
      expect(names).not.toContain('pay');
    } finally {
      await waiting[Symbol.asyncDispose]();
    }
  });

  it('lists calls that do not stop in time, and records their later outcome', async () => {
    const gate = held();
    fixture.world.on('pay', gate.behaviour);
    const running = fixture.call();
    await fixture.world.executed(1);
    const { inFlight } = await fixture.asSupervisor.freeze({ order: order({ wait: BRIEFLY }) });
    expect(inFlight).toMatchObject([{ ...keyOf(), target: 'pay' }]);
    expect(inFlight[0]?.startTime).toBeDefined();
    gate.release();
    expect(await running).toMatchObject({ status: CallStatus.OK });
    expect(await fixture.asSupervisor.freeze({ order: order() })).toMatchObject({ inFlight: [] });
  });

  it('rejects calls that wait for a slot (SUP-8)', async () => {
    const narrow = await startFixture({ world: { max_in_flight: 1 } });
    try {
      const gate = held();
      narrow.world.on('pay', gate.behaviour);
      const first = narrow.call({ callId: 'op-1' });
      await narrow.world.executed(1);
      const queued = expect(narrow.call({ callId: 'op-2' })).rejects.toMatchObject(halted);
      await narrow.asSupervisor.freeze({ order: order({ wait: BRIEFLY }) });
      gate.release();
      await queued;
      await first;
      expect(narrow.world.executions).toHaveLength(1);
    } finally {
      await narrow[Symbol.asyncDispose]();
    }
  });

  it('deletes recorded results at the end of a run without retention (SUP-4)', async () => {
    const gate = held();
    await fixture.call({ callId: 'op-1' });
    await fixture.call({ callId: 'op-1', runId: 'run_2' });
    fixture.world.on('pay', gate.behaviour);
    const running = fixture.call({ callId: 'op-2' });
    await fixture.world.executed(3);
    await fixture.asSupervisor.freeze({
      order: order({ cause: FreezeCause.END, retention: HistoryRetention.RUN, wait: BRIEFLY }),
    });
    gate.release();
    await running;
    const rows = await fixture.gateway.store.db
      .selectFrom('calls')
      .select(['run_id', 'call_id', 'result_content', 'receipt'])
      .orderBy('run_id')
      .orderBy('call_id')
      .execute();
    expect(rows.map(({ result_content }) => result_content !== null)).toEqual([false, false, true]);
    expect(rows.every(({ receipt }) => receipt !== null)).toBe(true);
  });
});

describe('an overloaded source (TG-8)', () => {
  it('rejects a call whose writ expired while it waited for a slot (TG-1)', async () => {
    const narrow = await startFixture({ world: { max_in_flight: 1 } });
    try {
      const gate = held();
      narrow.world.on('look', gate.behaviour);
      const first = narrow.call({ tool: 'look', callId: 'op-1' });
      await narrow.world.executed(1);
      const ttlMs = 300;
      const waits = narrow.call({ callId: 'op-2', ttlMs });
      const refused = expect(waits).rejects.toMatchObject({ reason: 'WRIT_EXPIRED' });
      const until = Date.now() + ttlMs + 1;
      await vi.waitUntil(() => Date.now() > until);
      gate.release();
      await first;
      await refused;
      expect(narrow.world.ran()).toEqual(['look']);
    } finally {
      await narrow[Symbol.asyncDispose]();
    }
  });

  it('rejects a call and neither issues a receipt nor burns it', async () => {
    const narrow = await startFixture({ world: { max_in_flight: 1, max_queued: 0 } });
    try {
      narrow.world.on('look', neverReturns);
      const caller = new AbortController();
      const first = narrow.call({ tool: 'look', callId: 'op-1' }, { signal: caller.signal });
      first.catch(() => undefined);
      await narrow.world.executed(1);
      const before = narrow.gateway.store.commits;
      await expect(narrow.call({ callId: 'op-2' })).rejects.toMatchObject({
        kind: 'resource_exhausted',
        reason: 'TOOL_QUEUE_FULL',
      });
      expect(narrow.gateway.store.commits).toBe(before);
    } finally {
      await narrow[Symbol.asyncDispose]();
    }
  });
});
