import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { ResultKind } from '@writ/contracts/writ/tool/v1/tool_pb';
import { describe, expect, it, vi } from 'vitest';
import type { AgentContext } from '../src/runtime/agent.ts';
import { RUN } from './delivery.ts';
import { approveAll } from './team.ts';
import { CUSTOM, llmRequest, signal, startWith } from './test-agent.ts';

describe('concurrent branches', () => {
  it('number their operations separately, independent of timing (RT-1)', async () => {
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const seen: unknown[] = [];
    const world = await startWith(
      async (ctx) => {
        const branch = (name: string) => async (inner: AgentContext) => {
          await inner.llm(llmRequest(`${name} first`));
          return await inner.llm(llmRequest(`${name} second`));
        };
        seen.push(await ctx.all([branch('slow'), branch('fast')]));
        await ctx.sleepUntilSignal('go');
        await ctx.reply('Done.');
      },
      {
        model: async (_, { messages }) => {
          const part = messages[0]?.parts[0]?.kind;
          const text = part?.case === 'text' ? part.value : '';
          if (text === 'slow first') await gates[0]?.promise;
          if (text === 'fast second') gates[0]?.resolve();
          return text;
        },
      },
    );
    await world.deliver({ manifest: CUSTOM });
    await world.until('SUSPENDED');
    await signal(world, 'go', { name: 'go' });
    await world.until('COMPLETED');
    expect(world.meter.paid.toSorted()).toEqual(['op-0-0-0', 'op-0-0-1', 'op-0-1-0', 'op-0-1-1']);
    expect(seen[1]).toEqual(seen[0]);
    expect(seen[0]).toMatchObject([{ text: 'slow second' }, { text: 'fast second' }]);
  });

  it('suspend the agent together, wake it on a signal for one branch, and do not repeat finished work (RT-1, RT-2)', async () => {
    const world = await startWith(
      async (ctx) => {
        const branch = (name: string) => async (inner: AgentContext) => {
          await inner.llm(llmRequest(name));
          const { of } = await inner.sleepUntilSignal(name);
          return of;
        };
        const nested = (inner: AgentContext) => inner.all([branch('b'), branch('c')]);
        const answers = await ctx.all<unknown>([branch('a'), nested]);
        await ctx.reply(JSON.stringify(answers));
      },
      { model: () => 'ok' },
    );
    await world.deliver({ manifest: CUSTOM });
    for (const [name, left] of [
      ['b', ['a', 'c']],
      ['a', ['c']],
    ] as const) {
      await world.until('SUSPENDED');
      await signal(world, `s-${name}`, { name });
      await vi.waitFor(async () => expect((await world.describe()).waitingFor).toEqual(left));
    }
    await signal(world, 's-c', { name: 'c' });
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toBe('["s-a",["s-b","s-c"]]');
    expect(world.meter.paid).toHaveLength(3);
  });

  it('suspend the agent even when a branch catches the exception that suspends it (RT-1, RT-2)', async () => {
    const world = await startWith(async (ctx) => {
      const wait = (name: string) => async (inner: AgentContext) => {
        const { of } = await inner.sleepUntilSignal(name).catch(() => ({ of: 'none' }));
        return of;
      };
      const failing = async (inner: AgentContext) => {
        const { of } = await inner.sleepUntilSignal('b').catch((cause) => {
          throw new Error('The wait failed.', { cause });
        });
        return of;
      };
      await ctx.reply(JSON.stringify(await ctx.all<unknown>([wait('a'), failing])));
    });
    await world.deliver({ manifest: CUSTOM });
    for (const name of ['a', 'b']) {
      await vi.waitFor(async () => expect((await world.describe()).waitingFor).toContain(name));
      await signal(world, `s-${name}`, { name });
    }
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toBe('["s-a","s-b"]');
  });

  it('are compared with the journal, and a divergence names the branch and both operations (RT-1)', async () => {
    let runs = 0;
    const world = await startWith(
      async (ctx) => {
        runs += 1;
        await ctx.all([
          (inner) => inner.llm(llmRequest('same')),
          (inner) => inner.llm(llmRequest(runs === 1 ? 'one' : 'other')),
        ]);
        await ctx.sleepUntilSignal('go');
      },
      { model: () => 'ok' },
    );
    await world.deliver({ manifest: CUSTOM });
    await world.until('SUSPENDED');
    await signal(world, 'go', { name: 'go' });
    const { wait, detail } = await world.untilCodeWait();
    expect(wait).toBe('code:journal_divergence:op-0-1-0');
    expect(world.supervisor.reports).toEqual([]);
    expect(detail).toMatch(
      /diverges from its journal at index 0\.1\.0: recorded llm \(\w{12}\), but the agent requested llm with different arguments \(\w{12} recorded, \w{12} requested\)/,
    );
  });

  it('throw the first error in branch order once all are done (RT-1)', async () => {
    const world = await startWith(
      async (ctx) => {
        const failing = (name: string) => async (inner: AgentContext) => {
          await inner.llm(llmRequest(name));
          throw new Error(name);
        };
        const error = await ctx.all([failing('first'), failing('second')]).catch((e) => e);
        await ctx.reply(error instanceof Error ? error.message : 'none');
      },
      { model: (_, { callId }) => callId },
    );
    await world.deliver({ manifest: CUSTOM });
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toBe('first');
  });
});

describe('the receipts of concurrent branches', () => {
  const readUser = (ctx: AgentContext) => ctx.tool('get_refund_context', '{"user_id":42}');

  it.each([
    ['5 results of 1 MB', 5, 1_000_000],
    ['300 results', 300, 10],
  ])('are sent in requests within the limits: %s (BD-1, SV-7)', async (_, branches, size) => {
    const world = await startWith(async (ctx) => {
      await ctx.step(1, () => ctx.all(Array.from({ length: branches }, () => readUser)));
      await ctx.reply('Done.');
    });
    let calls = 0;
    world.gateway.answer = () => {
      calls += 1;
      const content = JSON.stringify({ text: 'x'.repeat(size) });
      const result = { kind: ResultKind.JSON, content };
      return { status: CallStatus.OK, result, receipt: `receipt-${calls}` };
    };
    await world.deliver({ manifest: CUSTOM });
    const { epoch } = await world.until('COMPLETED');
    expect(epoch).toBe(1n);
  });

  it('are not sent again by a replay whose reviews are all in branches (RT-1, SV-7)', async () => {
    const rounds = 4;
    const world = await startWith(async (ctx) => {
      for (let round = 1; round <= rounds; round += 1) {
        await ctx.sleepUntilSignal('go');
        await ctx.all([readUser, readUser]);
      }
      await ctx.reply('Done.');
    });
    let calls = 0;
    world.gateway.answer = () => {
      calls += 1;
      const result = { kind: ResultKind.JSON, content: '{}' };
      return { status: CallStatus.OK, result, receipt: `receipt-${calls}` };
    };
    await world.deliver({ manifest: CUSTOM });
    for (let round = 1; round <= rounds; round += 1) {
      await world.until('SUSPENDED');
      await signal(world, `go-${round}`, { name: 'go' });
      await expect.poll(() => calls).toBe(2 * round);
    }
    await world.until('COMPLETED');
    const sent = Map.groupBy(world.supervisor.receipts, (receipt) => receipt);
    expect([...sent.keys()].toSorted()).toEqual(
      Array.from({ length: 2 * rounds }, (_, n) => `receipt-${n + 1}`),
    );
    // Both reviews of a round send the receipts of the round before.
    for (const times of sent.values()) expect(times.length).toBeLessThanOrEqual(2);
  });

  it('are sent after a replay even if another branch was reviewed before (RT-1, SV-5, SV-7)', async () => {
    const world = await startWith(
      async (ctx) => {
        const refund = async (inner: AgentContext) => {
          await inner.llm(llmRequest('How much?'));
          return await inner.tool('issue_refund', '{"amount_usd":5}');
        };
        await ctx.all([readUser, refund]);
        await ctx.reply('Done.');
      },
      { model: () => 'ok' },
    );
    world.supervisor.rule = (raw) => ({
      ...approveAll(raw),
      ...(raw.includes('issue_refund') && { verdict: 'escalate' as const }),
    });
    const slow = world.faults.holdAt('before call_tool op-0-0-0');
    const reviewed = world.faults.holdAt('after review op-0-1-1');
    await world.deliver({ manifest: CUSTOM });
    await Promise.all([slow.reached, reviewed.reached]);
    slow.release();
    reviewed.release();
    await world.until('SUSPENDED');
    await world.approve('op-0-1-1', { args: {} });
    await world.until('COMPLETED');
    expect(world.supervisor.observations.toSorted()).toEqual(['op-0-0-0', 'op-0-1-1']);
  });
});
