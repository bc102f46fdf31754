import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { FreezeCause } from '@writ/contracts/writ/control/v1/freeze_pb';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { VoidState } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Fixture, type Replica, startFixture } from './gateway-fixture.ts';
import { keyOf, type TestCall } from './test-call.ts';
import { failsOnAbort, held, neverReturns } from './world.ts';

let fixture: Fixture;
let other: Replica;

/** Sends the call to the other replica. */
async function callOther(call: TestCall = {}) {
  return await other.asWorker.callTool(await fixture.request(call), { epoch: 1n });
}

function order(wait: number) {
  return {
    order: {
      orderId: 'halt_1',
      scope: {
        kind: { case: 'run' as const, value: { tenant: 'acme', runId: 'run_1' } },
      },
      cause: FreezeCause.HALT,
      reason: 'It pays too much.',
      orderedBy: 'olga',
      wait: durationFromMs(wait),
    },
  };
}

describe.runIf(isPostgresAvailable())('two gateways on one PostgreSQL schema (SYS-5)', () => {
  beforeEach(async () => {
    fixture = await startFixture({
      config: { store: await postgresLocation() },
      world: { max_in_flight: 64, max_queued: 500 },
    });
    other = await fixture.startReplica();
  });

  afterEach(() => fixture[Symbol.asyncDispose]());

  it('execute a destructive call once for 200 concurrent requests (TG-1)', async () => {
    const requests = await Promise.all(Array.from({ length: 200 }, () => fixture.request()));
    const answers = await Promise.all(
      requests.map((request, index) =>
        (index % 2 === 0 ? fixture : other).asWorker.callTool(request, {
          epoch: 1n,
          timeoutMs: 60_000,
        }),
      ),
    );
    expect(fixture.world.executions).toHaveLength(1);
    expect(new Set(answers.map(({ receipt }) => receipt)).size).toBe(1);
    expect(answers.filter(({ status }) => status === CallStatus.OK)).toHaveLength(200);
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
  });

  it('return the outcome to a repeat at the other replica (TG-1, TG-5)', async () => {
    const pay = held();
    fixture.world.on('pay', pay.behaviour);
    const first = fixture.call();
    await fixture.world.executed(1);
    const repeat = callOther();
    const voided = await other.asSupervisor.voidWrit({ call: keyOf() });
    expect(voided.state).toBe(VoidState.IN_FLIGHT);
    pay.release();
    const { receipt, status } = await first;
    expect(status).toBe(CallStatus.OK);
    expect(await repeat).toMatchObject({ receipt, replayed: true });
    expect(fixture.world.executions).toHaveLength(1);
  });

  it('cancel calls of the other replica on a freeze, and wait until they end (SV-9, SUP-8)', async () => {
    fixture.world.on('look', failsOnAbort);
    const running = callOther({ tool: 'look', args: { to: 'sky' } });
    running.catch(() => undefined);
    await fixture.world.executed(1);
    const { inFlight } = await fixture.asSupervisor.freeze(order(20_000));
    expect(inFlight).toEqual([]);
    await expect(running).rejects.toMatchObject({ reason: 'HALTED' });
  });

  it('list calls of the other replica that are in flight after the wait (SV-9)', async () => {
    fixture.world.on('pay', neverReturns);
    const running = callOther();
    running.catch(() => undefined);
    await fixture.world.executed(1);
    const { inFlight } = await fixture.asSupervisor.freeze(order(100));
    expect(inFlight).toMatchObject([{ ...keyOf(), target: 'pay' }]);
  });

  it('start no call at the other replica after a freeze returns (SV-9)', async () => {
    let frozen = false;
    let late = 0;
    fixture.world.on('look', async () => {
      if (frozen) late += 1;
      return { status: 'ok' };
    });
    const calls = Array.from({ length: 60 }, async (_, index) => {
      const call = { tool: 'look', args: { to: `star ${index}` }, callId: `op-${index}` };
      return await (index % 2 === 0 ? fixture.call(call) : callOther(call)).catch(
        (error: unknown) => error,
      );
    });
    await fixture.asSupervisor.freeze(order(20_000));
    frozen = true;
    await Promise.all(calls);
    expect(late).toBe(0);
  });

  it('recover the calls of a dead replica, as UNKNOWN for a destructive tool (TG-5)', async () => {
    fixture.world.on('pay', neverReturns);
    const running = fixture.call();
    running.catch(() => undefined);
    await fixture.world.executed(1);
    await fixture.gateway.store.close();
    expect(await callOther()).toMatchObject({
      status: CallStatus.UNKNOWN,
      stopReason: 'outcome_unknown:pay',
    });
    expect(fixture.world.executions).toHaveLength(1);
  });

  it('share max_in_flight of a source and complete every call (TG-6)', async () => {
    await fixture[Symbol.asyncDispose]();
    fixture = await startFixture({
      config: { store: await postgresLocation() },
      world: { max_in_flight: 3, max_queued: 100 },
    });
    other = await fixture.startReplica();
    let running = 0;
    let most = 0;
    fixture.world.on('look', async () => {
      running += 1;
      most = Math.max(most, running);
      // A call ends only after two calls have run concurrently.
      await vi.waitFor(() => expect(most).toBeGreaterThan(1));
      running -= 1;
      return { status: 'ok' };
    });
    const calls = Array.from({ length: 40 }, (_, index) => {
      const call = { tool: 'look', args: { to: `star ${index}` }, callId: `op-${index}` };
      return index % 2 === 0 ? fixture.call(call) : callOther(call);
    });
    const answers = await Promise.all(calls);
    expect(answers.map(({ status }) => status)).toEqual(Array(40).fill(CallStatus.OK));
    expect(most).toBeLessThanOrEqual(3);
    expect(most).toBeGreaterThan(1);
  });
});
