import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { VoidState } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Fixture, startFixture } from './gateway-fixture.ts';
import { keyOf, type TestCall } from './test-call.ts';
import { neverReturns } from './world.ts';

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
});

afterEach(() => fixture[Symbol.asyncDispose]());

/** Crashes the gateway between intent and outcome of a call. */
async function crashDuring(call: TestCall): Promise<void> {
  const tool = call.tool ?? 'pay';
  fixture.world.on(tool, neverReturns);
  const lost = fixture.call(call).catch(() => undefined);
  await fixture.world.executed(fixture.world.executions.length + 1);
  await fixture.crash();
  fixture.world.on(tool, async () => ({ status: 'ok' }));
  // The crashed gateway keeps the connection open; the response to the call is ignored.
  lost.catch(() => undefined);
}

describe('a crash between intent and outcome (TG-5)', () => {
  it.each(['look', 'charge'])(
    'runs %s again for a repeated call, with the same idempotency key',
    async (tool) => {
      await crashDuring({ tool });
      expect(fixture.world.executions).toHaveLength(1);
      const answer = await fixture.call({ tool });
      expect(answer).toMatchObject({ status: CallStatus.OK, replayed: false });
      const keys = fixture.world.executions.map(({ call }) => call.idempotencyKey);
      expect(keys).toHaveLength(2);
      expect(new Set(keys).size).toBe(1);
      const again = await fixture.call({ tool });
      expect(again).toMatchObject({ receipt: answer.receipt, replayed: true });
      const { claims } = await fixture.receipt(answer.receipt);
      expect(claims).toMatchObject({ status: CallStatus.OK, revision: 1 });
    },
  );

  it('records an UNKNOWN receipt for a destructive tool, which never runs again', async () => {
    await crashDuring({});
    const answer = await fixture.call();
    expect(answer).toMatchObject({
      status: CallStatus.UNKNOWN,
      stopReason: 'outcome_unknown:pay',
      replayed: true,
    });
    const { claims } = await fixture.receipt(answer.receipt);
    expect(claims).toMatchObject({
      status: CallStatus.UNKNOWN,
      stopReason: 'outcome_unknown:pay',
      callId: 'op-1',
      agent: { name: 'payer', instance: 'payer-1' },
      revision: 1,
    });
    await fixture.crash();
    expect(await fixture.call()).toMatchObject({ receipt: answer.receipt });
    expect(fixture.world.executions).toHaveLength(1);
  });

  it('counts a call once for any number of attempts (TG-2)', async () => {
    const writ = { maxToolCalls: 2 };
    await crashDuring({ tool: 'charge', writ });
    await fixture.call({ tool: 'charge', writ });
    expect(await fixture.call({ tool: 'charge', callId: 'op-2', writ })).toMatchObject({
      status: CallStatus.OK,
    });
    expect((await fixture.call({ tool: 'charge', callId: 'op-3', writ })).stopReason).toBe(
      'max_tool_calls',
    );
  });

  it('requires an unexpired writ to run a tool again', async () => {
    await crashDuring({ tool: 'charge' });
    await expect(fixture.call({ tool: 'charge', ttlMs: -1 })).rejects.toMatchObject({
      reason: 'WRIT_EXPIRED',
    });
    expect(fixture.world.executions).toHaveLength(1);
  });

  it('settles an idempotent call as UNKNOWN on VoidWrit, without another execution (TG-8)', async () => {
    await crashDuring({ tool: 'charge' });
    const voided = await fixture.asSupervisor.voidWrit({ call: keyOf() });
    expect(voided.state).toBe(VoidState.RECEIPT);
    expect((await fixture.receipt(voided.receipt)).claims.status).toBe(CallStatus.UNKNOWN);
    expect(await fixture.call({ tool: 'charge' })).toMatchObject({
      status: CallStatus.UNKNOWN,
      receipt: voided.receipt,
    });
    expect(fixture.world.executions).toHaveLength(1);
  });

  it('settles a read-only call as ERROR on VoidWrit', async () => {
    await crashDuring({ tool: 'look' });
    const voided = await fixture.asSupervisor.voidWrit({ call: keyOf() });
    expect(voided.state).toBe(VoidState.RECEIPT);
    expect((await fixture.receipt(voided.receipt)).claims).toMatchObject({
      status: CallStatus.ERROR,
      stopReason: 'tool_error:look',
    });
  });
});

describe('a tool that exceeds its timeout (TG-6)', () => {
  it('ends as ERROR when read-only and as UNKNOWN otherwise (SYS-4)', async () => {
    const limited = await startFixture({
      tools: {
        look: { side_effect: 'read_only', timeout: '20ms' },
        charge: { side_effect: 'idempotent', timeout: '20ms' },
        pay: { side_effect: 'destructive', timeout: '20ms' },
      },
    });
    try {
      for (const tool of ['look', 'charge', 'pay']) limited.world.on(tool, neverReturns);
      const look = await limited.call({ tool: 'look', callId: 'op-1' });
      expect(look).toMatchObject({
        status: CallStatus.ERROR,
        stopReason: 'tool_error:look',
        message: 'look did not respond within its timeout of 20 ms.',
      });
      expect(limited.world.executions[0]?.call.signal.aborted).toBe(true);
      for (const tool of ['charge', 'pay']) {
        const answer = await limited.call({ tool, callId: `op-${tool}` });
        expect(answer).toMatchObject({
          status: CallStatus.UNKNOWN,
          stopReason: `outcome_unknown:${tool}`,
          message: expect.stringContaining('timeout of 20 ms'),
        });
      }
    } finally {
      await limited[Symbol.asyncDispose]();
    }
  });
});
