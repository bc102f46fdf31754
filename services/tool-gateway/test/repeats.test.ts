import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Fixture, startFixture } from './gateway-fixture.ts';
import { failsOnAbort, held } from './world.ts';

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
});

afterEach(() => fixture[Symbol.asyncDispose]());

describe('a repeat of a call (TG-1)', () => {
  it('returns the recorded outcome without another execution', async () => {
    const first = await fixture.call();
    const before = fixture.gateway.store.commits;
    const again = await fixture.call();
    expect(again).toMatchObject({ receipt: first.receipt, result: first.result, replayed: true });
    expect(first.replayed).toBe(false);
    expect(fixture.world.executions).toHaveLength(1);
    expect(fixture.gateway.store.commits).toBe(before);
  });

  it("returns the recorded outcome after the writ's expiry and after a restart", async () => {
    const first = await fixture.call();
    await fixture.crash();
    const again = await fixture.call({ ttlMs: -1 });
    expect(again).toMatchObject({ receipt: first.receipt, replayed: true });
  });

  it('with other arguments or another tool is denied, even with a writ for these arguments or this tool', async () => {
    await fixture.call();
    await expect(fixture.call({ args: { to: 'eve' } })).rejects.toMatchObject({
      kind: 'permission_denied',
      reason: 'WRIT_MISMATCH',
      metadata: expect.objectContaining({ field: 'arguments_json' }),
    });
    await expect(fixture.call({ tool: 'charge' })).rejects.toMatchObject({
      reason: 'WRIT_MISMATCH',
    });
    expect(fixture.world.executions).toHaveLength(1);
    const refusals = await fixture.gateway.store.db.selectFrom('refusals').selectAll().execute();
    expect(refusals).toHaveLength(2);
  });

  it('requires a matching writ', async () => {
    await fixture.call();
    await expect(fixture.call({ writ: { runId: 'run_2' } })).rejects.toMatchObject({
      reason: 'WRIT_MISMATCH',
    });
  });

  it('executes once for a hundred concurrent calls, which all get the same receipt', async () => {
    const gate = held();
    fixture.world.on('pay', gate.behaviour);
    const request = await fixture.request();
    const calls = Array.from({ length: 100 }, () =>
      fixture.asWorker.callTool(request, { epoch: 1n }),
    );
    await fixture.world.executed(1);
    gate.release();
    const answers = await Promise.all(calls);
    expect(fixture.world.executions).toHaveLength(1);
    expect(new Set(answers.map(({ receipt }) => receipt)).size).toBe(1);
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
    expect(fixture.gateway.store.commits).toBe(2);
  });
});

describe('the epoch of a worker (RT-2)', () => {
  it('fences a worker that lost its lease, for new calls and for repeats', async () => {
    await fixture.call({ callId: 'op-1' }, { epoch: 1n });
    await fixture.call({ callId: 'op-1' }, { epoch: 2n });
    const stale = { kind: 'failed_precondition', reason: 'STALE_EPOCH' };
    await expect(fixture.call({ callId: 'op-1' }, { epoch: 1n })).rejects.toMatchObject(stale);
    await expect(fixture.call({ callId: 'op-2' }, { epoch: 1n })).rejects.toMatchObject(stale);
    await fixture.crash();
    await expect(fixture.call({ callId: 'op-2' }, { epoch: 1n })).rejects.toMatchObject(stale);
    await expect(fixture.call({ callId: 'op-2' }, { epoch: 2n })).resolves.toBeDefined();
    expect(fixture.world.executions).toHaveLength(2);
  });
});

describe('a caller that disconnects (SUP-6)', () => {
  it('cancels a tool that may run again; a repeat runs it with the same idempotency key', async () => {
    fixture.world.on('charge', failsOnAbort);
    const caller = new AbortController();
    const first = fixture.call({ tool: 'charge' }, { signal: caller.signal });
    const { call } = await fixture.world.executed(1);
    caller.abort();
    await expect(first).rejects.toMatchObject({ kind: 'cancelled' });
    await vi.waitUntil(() => call.signal.aborted);
    fixture.world.on('charge', async () => ({ status: 'ok' }));
    const again = await fixture.call({ tool: 'charge' });
    expect(again).toMatchObject({ status: CallStatus.OK });
    const keys = fixture.world.executions.map((execution) => execution.call.idempotencyKey);
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
  });

  it('does not cancel a destructive tool; a repeat of the call returns its outcome', async () => {
    const gate = held();
    fixture.world.on('pay', gate.behaviour);
    const caller = new AbortController();
    const first = fixture.call({}, { signal: caller.signal });
    const { call } = await fixture.world.executed(1);
    caller.abort();
    await expect(first).rejects.toMatchObject({ kind: 'cancelled' });
    // The server span ends when the server has noticed the disconnect.
    await vi.waitUntil(() => fixture.spans.spans().some(({ kind }) => kind === 'server'));
    expect(call.signal.aborted).toBe(false);
    const again = fixture.call();
    gate.release();
    expect(await again).toMatchObject({ status: CallStatus.OK });
    expect(fixture.world.executions).toHaveLength(1);
  });

  it('cancels the tool in the same way when its deadline passes', async () => {
    fixture.world.on('look', failsOnAbort);
    // A busy machine may take longer to start the tool.
    for (let timeoutMs = 500; fixture.world.executions.length === 0; timeoutMs *= 2) {
      const late = fixture.call({ tool: 'look' }, { timeoutMs });
      await expect(late).rejects.toMatchObject({ kind: 'deadline_exceeded' });
    }
    const { call } = await fixture.world.executed(1);
    await vi.waitUntil(() => call.signal.aborted);
  });
});
