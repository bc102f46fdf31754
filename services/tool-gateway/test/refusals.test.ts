import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import type { CallToolResponse } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { argsHash } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fixture, startFixture } from './gateway-fixture.ts';
import type { TestCall } from './test-call.ts';

let fixture: Fixture;

beforeAll(async () => {
  fixture = await startFixture({
    tools: {
      pay: { side_effect: 'destructive' },
      look: { side_effect: 'read_only', max_calls_per_agent: 3, max_repeats: 2 },
      hidden: { side_effect: 'read_only' },
    },
    allow: { agents: { payer: ['pay', 'look'] } },
  });
});

afterAll(() => fixture[Symbol.asyncDispose]());

/** Makes a call that is refused, checks its receipt and returns the response. */
async function refusal(call: TestCall): Promise<CallToolResponse> {
  const before = fixture.world.executions.length;
  const answer = await fixture.call(call);
  expect(answer.status).toBe(CallStatus.REFUSED);
  expect(answer.result).toBeUndefined();
  expect(fixture.world.executions).toHaveLength(before);
  const { claims } = await fixture.receipt(answer.receipt);
  expect(claims).toMatchObject({
    status: CallStatus.REFUSED,
    stopReason: answer.stopReason,
    callId: call.callId,
    resultSha256: '',
  });
  return answer;
}

async function allowed(call: TestCall): Promise<void> {
  expect(await fixture.call(call)).toMatchObject({ status: CallStatus.OK });
}

describe('a refusal leaves a signed receipt (TG-2, TG-8)', () => {
  it('for max_tool_calls, counted over all agents of the run, including refused calls (TG-2)', async () => {
    const runId = 'run_max';
    const writ = { maxToolCalls: 2 };
    await allowed({ runId, callId: 'op-1', agent: 'payer-1', writ });
    await refusal({ runId, callId: 'op-2', agent: 'payer-2', args: {}, writ });
    expect(await refusal({ runId, callId: 'op-3', agent: 'payer-3', writ })).toMatchObject({
      stopReason: 'max_tool_calls',
      message: 'The run has made 2 calls; the limit is 2.',
    });
  });

  it('for a run with max_tool_calls 0 (TG-2)', async () => {
    const call = { runId: 'run_zero', callId: 'op-1', writ: { maxToolCalls: 0 } };
    expect((await refusal(call)).stopReason).toBe('max_tool_calls');
  });

  it('for tool_denied, because of the writ or of tools.yaml (TG-2)', async () => {
    const runId = 'run_denied';
    const byWrit = { runId, callId: 'op-1', writ: { allowedTools: ['look'] } };
    expect((await refusal(byWrit)).stopReason).toBe('tool_denied:pay');
    const byGateway = { runId, callId: 'op-2', tool: 'hidden' };
    expect((await refusal(byGateway)).stopReason).toBe('tool_denied:hidden');
  });

  it('and ListTools returns the allow rules of each tool to the supervisor (TG-2)', async () => {
    const { tools } = await fixture.asSupervisor.listTools({});
    const rules = tools.map(({ name, allowedAgents, allowedTenants }) => [
      name,
      allowedAgents?.names,
      allowedAgents?.except,
      allowedTenants,
    ]);
    expect(rules).toEqual([
      ['hidden', [], false, undefined],
      ['look', ['payer'], false, undefined],
      ['pay', ['payer'], false, undefined],
    ]);
  });

  it('for tool_missing, when no allow rule would deny the tool (TG-2)', async () => {
    const unrestricted = await startFixture();
    try {
      const answer = await unrestricted.call({ tool: 'hidden', callId: 'op-1' });
      expect(answer).toMatchObject({
        status: CallStatus.REFUSED,
        stopReason: 'tool_missing:hidden',
      });
    } finally {
      await unrestricted[Symbol.asyncDispose]();
    }
  });

  it('for tool_changed (TG-2)', async () => {
    const call = { runId: 'run_changed', callId: 'op-1', writ: { definitionDigest: 'older' } };
    expect((await refusal(call)).stopReason).toBe('tool_changed:pay');
  });

  it('for tool_bad_args, naming each argument (TG-2, TG-3)', async () => {
    const runId = 'run_args';
    const answer = await refusal({ runId, callId: 'op-1', args: { cents: 1.5, bcc: 'eve' } });
    expect(answer.stopReason).toBe('tool_bad_args:pay');
    for (const name of ['bcc', 'to', 'cents'])
      expect(answer.message).toContain(`Argument ${name} `);
    for (const [index, argumentsJson] of [
      '',
      '[]',
      '{"to":"a","to":"b"}',
      '{"to":NaN}',
    ].entries()) {
      const call = { runId, callId: `bad-${index}`, argumentsJson };
      expect((await refusal(call)).stopReason).toBe('tool_bad_args:pay');
    }
  });

  it('for loop_detected:per_tool_limit, per agent (TG-2)', async () => {
    const runId = 'run_limit';
    await allowed({ runId, callId: 'op-1', args: { to: 'anna' } });
    await allowed({ runId, callId: 'op-2', args: { to: 'max' } });
    expect(await refusal({ runId, callId: 'op-3', args: { to: 'eve' } })).toMatchObject({
      stopReason: 'loop_detected:per_tool_limit',
      message: expect.stringContaining('2 calls of pay, the last one as op-2; the limit is 2'),
      repetition: { tool: 'pay', argsHash: '', earlierCallId: 'op-2', calls: 2, limit: 2 },
    });
    await allowed({ runId, callId: 'op-1', agent: 'payer-2', args: { to: 'eve' } });
  });

  it('for loop_detected:signature_repeat, independent of the spelling of the arguments (TG-2, TG-4)', async () => {
    const runId = 'run_repeat';
    await allowed({ runId, callId: 'op-1', args: { to: 'anna', cents: 5 } });
    const again = { runId, callId: 'op-2', argumentsJson: '{ "cents": 5.0, "to": " anna " }' };
    const first = await refusal(again);
    expect(first).toMatchObject({
      stopReason: 'loop_detected:signature_repeat',
      message: expect.stringMatching(/1 call of pay with these same arguments/),
      repetition: {
        tool: 'pay',
        argsHash: argsHash({ to: 'anna', cents: 5 }),
        earlierCallId: 'op-1',
        calls: 1,
        limit: 1,
      },
    });
    // A repeat returns the recorded repetition, although the counters have changed.
    expect((await fixture.call(again)).repetition).toEqual(first.repetition);
    // The refused call op-2 counts toward max_calls_per_agent.
    expect((await refusal({ runId, callId: 'op-3', args: { to: 'max' } })).stopReason).toBe(
      'loop_detected:per_tool_limit',
    );
  });

  it("for a read-only tool's own max_repeats (TG-2)", async () => {
    const runId = 'run_look';
    await allowed({ runId, tool: 'look', callId: 'op-1' });
    await allowed({ runId, tool: 'look', callId: 'op-2' });
    expect((await refusal({ runId, tool: 'look', callId: 'op-3' })).stopReason).toBe(
      'loop_detected:signature_repeat',
    );
    expect((await refusal({ runId, tool: 'look', callId: 'op-4' })).stopReason).toBe(
      'loop_detected:per_tool_limit',
    );
  });

  it('and a repeat of the call returns this receipt and is not counted', async () => {
    const runId = 'run_again';
    const first = await fixture.call({
      runId,
      callId: 'op-1',
      args: {},
      writ: { maxToolCalls: 2 },
    });
    const again = await fixture.call({
      runId,
      callId: 'op-1',
      args: {},
      writ: { maxToolCalls: 2 },
    });
    expect(again).toMatchObject({ receipt: first.receipt, replayed: true });
    await allowed({ runId, callId: 'op-2', writ: { maxToolCalls: 2 } });
  });
});

describe('a tool that fails (TG-2)', () => {
  it('gets a receipt of status ERROR with tool_error or tool_bad_result', async () => {
    const runId = 'run_fails';
    fixture.world.on('pay', async () => {
      throw new Error('a secret');
    });
    const failed = await fixture.call({ runId, callId: 'op-1', args: { to: 'a' } });
    expect(failed).toMatchObject({
      status: CallStatus.ERROR,
      stopReason: 'tool_error:pay',
      message: 'pay failed.',
    });
    fixture.world.on('pay', async () => 'done');
    const garbled = await fixture.call({ runId, callId: 'op-2', args: { to: 'b' } });
    expect(garbled).toMatchObject({ status: CallStatus.ERROR, stopReason: 'tool_bad_result:pay' });
    const { claims } = await fixture.receipt(garbled.receipt);
    expect(claims).toMatchObject({ status: CallStatus.ERROR, stopReason: 'tool_bad_result:pay' });
  });
});
