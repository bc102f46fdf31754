import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { ResolvedOutcome, VoidState } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { sha256Hex } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Fixture, startFixture } from './gateway-fixture.ts';
import { keyOf } from './test-call.ts';
import { held, neverReturns } from './world.ts';

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
});

afterEach(() => fixture[Symbol.asyncDispose]());

describe('VoidWrit (TG-8)', () => {
  it('burns a call that was never made', async () => {
    const voided = await fixture.asSupervisor.voidWrit({ call: keyOf(), reason: 'The run ended.' });
    expect(voided.state).toBe(VoidState.BURNT);
    expect((await fixture.receipt(voided.receipt)).claims).toMatchObject({
      callId: 'op-1',
      status: CallStatus.VOID,
    });
    const answer = await fixture.call();
    expect(answer).toMatchObject({ status: CallStatus.VOID, receipt: voided.receipt });
    await fixture.crash();
    expect((await fixture.call()).status).toBe(CallStatus.VOID);
    expect(await fixture.asSupervisor.voidWrit({ call: keyOf() })).toMatchObject(voided);
    expect(fixture.world.executions).toEqual([]);
  });

  it('returns the receipt of a call with an outcome', async () => {
    const { receipt } = await fixture.call();
    expect(await fixture.asSupervisor.voidWrit({ call: keyOf() })).toMatchObject({
      state: VoidState.RECEIPT,
      receipt,
    });
  });

  it('reports a call in flight without changing it', async () => {
    const gate = held();
    fixture.world.on('pay', gate.behaviour);
    const running = fixture.call();
    await fixture.world.executed(1);
    expect(await fixture.asSupervisor.voidWrit({ call: keyOf() })).toMatchObject({
      state: VoidState.IN_FLIGHT,
      receipt: '',
    });
    gate.release();
    expect(await running).toMatchObject({ status: CallStatus.OK });
  });

  it('burns or executes a concurrent call, never both', async () => {
    const races = Array.from({ length: 20 }, async (_, index) => {
      const callId = `race-${index}`;
      const [voided, answer] = await Promise.all([
        fixture.asSupervisor.voidWrit({ call: keyOf({ callId }) }),
        fixture.call({ callId }),
      ]);
      const ran = fixture.world.executions.some(({ call }) => call.callId === callId);
      expect(ran).toBe(answer.status === CallStatus.OK);
      expect(voided.state === VoidState.BURNT).toBe(!ran);
    });
    await Promise.all(races);
  });
});

describe('ResolveOutcome (TG-5)', () => {
  beforeEach(async () => {
    fixture.world.on('pay', neverReturns);
    fixture.call({ writ: { resultFields: ['refund.usd'] } }).catch(() => undefined);
    await fixture.world.executed(1);
    await fixture.crash();
  });

  const resolution = {
    requestId: 'resolve_1',
    call: keyOf(),
    outcome: ResolvedOutcome.DONE,
    resultJson: '{"refund":{"usd":12}}',
    resolvedBy: 'olga',
    comment: 'Checked in the ledger.',
  };

  it('replaces an unknown outcome with the resolution, and issues a second receipt', async () => {
    const { receipt, resolveTime } = await fixture.asSupervisor.resolveOutcome(resolution);
    expect(resolveTime).toBeDefined();
    expect((await fixture.receipt(receipt)).claims).toMatchObject({
      status: CallStatus.OK,
      stopReason: '',
      revision: 2,
      resolvedBy: 'olga',
      resultSha256: sha256Hex(resolution.resultJson),
      resultFields: { 'refund.usd': 12 },
    });
    expect(await fixture.call()).toMatchObject({
      status: CallStatus.OK,
      receipt,
      result: { content: resolution.resultJson },
    });
    expect(fixture.world.executions).toHaveLength(1);
  });

  it('records that the call was not executed', async () => {
    const { receipt } = await fixture.asSupervisor.resolveOutcome({
      ...resolution,
      outcome: ResolvedOutcome.NOT_DONE,
      resultJson: '',
    });
    expect((await fixture.receipt(receipt)).claims).toMatchObject({
      status: CallStatus.ERROR,
      stopReason: 'tool_error:pay',
      revision: 2,
      resolvedBy: 'olga',
    });
  });

  it('returns the first resolution to later requests', async () => {
    const first = await fixture.asSupervisor.resolveOutcome(resolution);
    expect(await fixture.asSupervisor.resolveOutcome(resolution)).toMatchObject(first);
    const other = { ...resolution, requestId: 'resolve_2', outcome: ResolvedOutcome.NOT_DONE };
    expect(await fixture.asSupervisor.resolveOutcome({ ...other, resultJson: '' })).toMatchObject(
      first,
    );
    await expect(
      fixture.asSupervisor.resolveOutcome({ ...resolution, comment: 'No.' }),
    ).rejects.toMatchObject({ reason: 'REQUEST_ID_REUSED' });
  });

  it('rejects a known outcome, a missing call and an invalid result', async () => {
    const done = { ...resolution, call: keyOf({ callId: 'op-2' }) };
    await expect(fixture.asSupervisor.resolveOutcome(done)).rejects.toMatchObject({
      reason: 'CALL_NOT_FOUND',
    });
    await fixture.call({ tool: 'look', callId: 'op-2' });
    await expect(fixture.asSupervisor.resolveOutcome(done)).rejects.toMatchObject({
      reason: 'CALL_OUTCOME_KNOWN',
    });
    await expect(
      fixture.asSupervisor.resolveOutcome({ ...resolution, resultJson: '[]' }),
    ).rejects.toMatchObject({ reason: 'INVALID_RESULT' });
  });
});
