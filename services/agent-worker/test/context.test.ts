import { create, toBinary } from '@bufbuild/protobuf';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { derivedId, OverloadedError, PreconditionError, type WritError } from '@writ/kernel';
import { describe, expect, it, vi } from 'vitest';
import { AGENT, RUN } from './delivery.ts';
import type { Moment } from './fault-switches.ts';
import { approveAll } from './team.ts';
import {
  CUSTOM,
  FROZEN,
  llmRequest,
  signal,
  startAgain,
  startWith,
  type Work,
} from './test-agent.ts';
import { World } from './world.ts';

/** The first call of an agent is refused; its tool call has the call id `tool`. */
interface Refusal {
  readonly refusedAt: Moment;
  readonly error: WritError;
  readonly tool: string;
}

const FINAL = { action: { kind: 'final', answer: 'Done.' } } as const;

describe('the journal of an agent’s context', () => {
  it('replays time, random numbers and answers after a suspension (RT-1, RT-2)', async () => {
    const seen: unknown[] = [];
    const world = await startWith(
      async (ctx) => {
        const answer = await ctx.llm(llmRequest('hello'));
        seen.push([ctx.now().getTime(), ctx.random(), answer]);
        await ctx.sleepUntilSignal('new_source_item');
        ctx.stop({ stopReason: 'stuck', phase: 'worker' });
      },
      { model: () => 'hi' },
    );
    await world.deliver({ manifest: CUSTOM });
    await world.until('SUSPENDED');
    await signal(world, 's-1');
    await world.until('ERROR');
    expect(seen).toHaveLength(2);
    expect(seen[1]).toEqual(seen[0]);
    expect(world.meter.paid).toEqual(['op-0']);
  });

  it('lists calls and guardrails of a step in `after` of its later events until the supervisor acknowledges them (HK-1)', async () => {
    const work: Work = async (ctx) => {
      await ctx.step(1, async () => {
        await ctx.llm(llmRequest('one'));
        ctx.trip('max_tokens');
        await ctx.llm(llmRequest('one again'));
        ctx.log('two calls');
      });
      await ctx.step(2, async () => {
        await ctx.llm(llmRequest('two'));
        await ctx.propose(FINAL);
      });
    };
    const world = await World.start({ model: () => 'hi' });
    const idOf = (callId: string) => derivedId('evt', RUN, AGENT.instance, callId, 'LLM_END', '1');
    world.meter.eventsOf = ({ callId, step }) => {
      const type = HookEventType.LLM_END;
      const event = create(HookEventSchema, { type, step, callId, eventId: idOf(callId) });
      return [new Uint8Array(toBinary(HookEventSchema, event))];
    };
    world.supervisor.rule = approveAll;
    await startAgain(world, work);
    await world.deliver({ manifest: CUSTOM });
    await world.until('COMPLETED');
    const tripped = derivedId('evt', RUN, AGENT.instance, 'op-1', 'GUARDRAIL_TRIP');
    const first = [idOf('op-0'), tripped];
    const all = [...first, idOf('op-2')];
    expect(world.meter.requests.map(({ after }) => after)).toEqual([[], first, []]);
    const { GUARDRAIL_TRIP, LOG_ENTRY, STEP_END } = HookEventType;
    const named = (type: HookEventType) =>
      world.events.filter((event) => event.type === type).map(({ after }) => after);
    await vi.waitFor(() => {
      expect(named(GUARDRAIL_TRIP)).toEqual([[idOf('op-0')]]);
      expect(named(LOG_ENTRY)).toEqual([all]);
      expect(named(STEP_END)).toEqual([all, []]);
    });
  });

  it('ends a failed step before the next step starts when the agent catches its error (RT-1, HK-1)', async () => {
    const work: Work = async (ctx) => {
      const failing = ctx.step(1, async () => {
        await ctx.llm(llmRequest('one'));
        throw new Error('Caught.');
      });
      await failing.catch(() => undefined);
      await ctx.step(2, async () => void (await ctx.propose(FINAL)));
    };
    const world = await startWith(work, { model: () => 'hi' });
    world.supervisor.rule = approveAll;
    await world.deliver({ manifest: CUSTOM });
    await world.until('COMPLETED');
    const steps = ['STEP_START 1', 'STEP_END 1 ok', 'STEP_START 2', 'STEP_END 2 approve'];
    await vi.waitFor(() => expect(world.steps()).toEqual(steps));
    const { STEP_START, STEP_END } = HookEventType;
    const find = (type: HookEventType, step: number) =>
      world.events.find((event) => event.type === type && event.step === step);
    expect(find(STEP_START, 2)?.after).toEqual([find(STEP_END, 1)?.eventId]);
  });

  it('is committed before an effect that depends on a random number, so that a replay is the same (RT-1)', async () => {
    const work: Work = async (ctx) => {
      const answer = await ctx.llm(llmRequest(`${ctx.random()} ${ctx.now().getTime()}`));
      const stopReason = answer.kind === 'answer' ? 'stuck' : answer.stopReason;
      ctx.stop({ stopReason, phase: 'worker' });
    };
    const world = await World.start({ model: () => 'hi', inFile: true });
    await startAgain(world, work, FROZEN);
    const asked = world.faults.silenceAt('after generate op-2');
    await world.deliver({ manifest: CUSTOM });
    await asked;
    await startAgain(world, work, FROZEN);
    const { stopReason } = await world.until('ERROR');
    expect(stopReason).toBe('stuck');
    expect(world.meter.requests).toHaveLength(2);
    expect(world.meter.paid).toHaveLength(1);
  });

  /** Runs an agent whose first call is refused, in a worker that is abandoned after the tool call, then in another. */
  async function replayRefusal(work: Work, { refusedAt, error, tool }: Refusal): Promise<World> {
    const world = await World.start({ model: () => 'hi', inFile: true });
    world.supervisor.rule = approveAll;
    world.withChildren({ helper: { kind: AgentKind.REACT, tools: [] } });
    world.faults.failAt(refusedAt, error);
    await startAgain(world, work, FROZEN);
    const executed = world.faults.silenceAt(`after call_tool ${tool}`);
    await world.deliver({ manifest: CUSTOM });
    await executed;
    await startAgain(world, work, FROZEN);
    await world.until('COMPLETED');
    return world;
  }

  it('is committed before an effect that follows a refused model call, so that the refusal is replayed after a crash (RT-1, EM-7)', async () => {
    const work: Work = async (ctx) => {
      const first = await ctx.llm(llmRequest('large'));
      if (first.kind === 'failed') await ctx.llm(llmRequest('small'));
      await ctx.tool('get_refund_context', '{"user_id":42}');
      await ctx.propose(FINAL);
    };
    const metadata = { dimension: 'tokens' };
    const error = new OverloadedError('BUDGET_EXHAUSTED', 'The budget is reserved.', metadata);
    const world = await replayRefusal(work, {
      refusedAt: 'before generate op-0',
      error,
      tool: 'op-2',
    });
    expect(world.meter.paid).toEqual(['op-1']);
    expect(world.gateway.executed).toEqual(['op-2 get_refund_context']);
  });

  it('is committed before an effect that follows a refused delegation, so that the refusal is replayed after a crash (RT-1, AG-3)', async () => {
    const work: Work = async (ctx) => {
      const { kind } = await ctx.spawn('helper', 'Help.');
      await ctx.tool('get_refund_context', `{"user_id":${kind === 'failed' ? 42 : 43}}`);
      await ctx.propose(FINAL);
    };
    const error = new PreconditionError('SPAWN_FAILED', 'No tab was created.');
    const world = await replayRefusal(work, {
      refusedAt: 'before spawn op-0',
      error,
      tool: 'op-1',
    });
    expect(world.supervisor.decided).toEqual([
      'op-1 approve get_refund_context',
      'op-2 approve final',
    ]);
    expect(world.gateway.executed).toEqual(['op-1 get_refund_context']);
  });

  it('reads tools and history without a commit, and commits both before the next effect (RT-1)', async () => {
    const world = await World.start({ model: () => 'hi' });
    const worker = await startAgain(world, async (ctx) => {
      ctx.random();
      await ctx.recall();
      await ctx.tools();
      await ctx.recall();
      await ctx.llm(llmRequest('Hello.'));
      ctx.stop({ stopReason: 'stuck', phase: 'worker' });
    });
    const { reached, release } = world.faults.holdAt('before generate op-4');
    await world.deliver({ manifest: CUSTOM });
    await reached;
    // The delivery, and the entries before the model call.
    expect(worker.store.commits).toBe(2);
    const entries = await worker.store.db.selectFrom('journal').select('kind').execute();
    expect(entries.map(({ kind }) => kind)).toEqual(['random', 'recall', 'tools', 'recall']);
    release();
    await world.until('ERROR');
  });

  it('returns the same results of concurrent operations in a replay (RT-1)', async () => {
    const seen: unknown[] = [];
    const world = await startWith(
      async (ctx) => {
        const one = async (n: number) => [ctx.random(), await ctx.llm(llmRequest(`model ${n}`))];
        seen.push(await Promise.all([1, 2, 3, 4].map(one)));
        await ctx.sleepUntilSignal('new_source_item');
        ctx.stop({ stopReason: 'stuck', phase: 'worker' });
      },
      { model: ({ text }) => `answer of ${String(text)}` },
    );
    await world.deliver({ manifest: CUSTOM });
    await world.until('SUSPENDED');
    await signal(world, 's-1');
    const { stopReason } = await world.until('ERROR');
    expect(stopReason).toBe('stuck');
    expect(seen[1]).toEqual(seen[0]);
    expect(world.meter.paid).toHaveLength(4);
  });

  it('stores large values once per run, by digest (RT-1)', async () => {
    const text = 'x'.repeat(10_000);
    const world = await World.start({ model: () => text });
    const { store } = await startAgain(world, async (ctx) => {
      await ctx.llm(llmRequest('one'));
      const two = await ctx.llm(llmRequest('two'));
      await ctx.sleepUntilSignal('new_source_item');
      ctx.stop({ stopReason: 'stuck', phase: 'worker', detail: String(two.kind) });
    });
    await world.deliver({ manifest: CUSTOM });
    await world.until('SUSPENDED');
    const rows = await store.db.selectFrom('journal').select(['value', 'payload_digest']).execute();
    expect(rows.map(({ value }) => value)).toEqual([null, null]);
    expect(await store.db.selectFrom('payloads').selectAll().execute()).toHaveLength(1);
    await signal(world, 's-1');
    await world.until('ERROR');
    expect(world.supervisor.reports[0]?.detail).toBe('answer');
  });
});

describe('a replayed agent', () => {
  it('is parked when it diverges, with the position and both operations (RT-1, BD-6)', async () => {
    let runs = 0;
    const world = await startWith(
      async (ctx) => {
        runs += 1;
        await ctx.llm(llmRequest('first'));
        if (runs === 1) await ctx.llm(llmRequest('second'));
        else await ctx.propose(FINAL);
        await ctx.sleepUntilSignal('new_source_item');
      },
      { model: () => 'hi' },
    );
    await world.deliver({ manifest: CUSTOM });
    await world.until('SUSPENDED');
    await signal(world, 's-1');
    const { wait, detail } = await world.untilCodeWait();
    expect(wait).toBe('code:journal_divergence:op-1');
    expect(detail).toMatch(
      /^refund-desk-1 diverges from its journal at index 1: recorded llm \(\w{12}\), but the agent requested review \(\w{12}\)\.$/,
    );
    expect(world.supervisor.reports).toEqual([]);
    expect(world.supervisor.decided).toEqual([]);
  });

  it('is parked when it requests different arguments or omits an operation (RT-1)', async () => {
    for (const [change, detail] of [
      ['other', /requested llm with different arguments/],
      ['none', /index 0: recorded llm .* did not request it/],
    ] as const) {
      let runs = 0;
      const world = await startWith(
        async (ctx) => {
          runs += 1;
          if (runs > 1 && change === 'none') return;
          await ctx.llm(llmRequest(runs === 1 ? 'first' : change));
          await ctx.sleepUntilSignal('new_source_item');
        },
        { model: () => 'hi' },
      );
      await world.deliver({ manifest: CUSTOM });
      await world.until('SUSPENDED');
      await signal(world, 's-1');
      expect((await world.untilCodeWait()).detail).toMatch(detail);
      expect(world.supervisor.reports).toEqual([]);
    }
  });

  it('is restarted after a failure, up to max_retries times (SUP-7)', async () => {
    let runs = 0;
    const world = await startWith(
      async (ctx) => {
        runs += 1;
        await ctx.llm(llmRequest('hello'));
        throw new TypeError('A secret.');
      },
      { model: () => 'hi' },
    );
    await world.deliver({ manifest: { ...CUSTOM, limits: { maxRetries: 2 } } });
    const { stopReason } = await world.until('ERROR');
    expect({ runs, stopReason }).toEqual({ runs: 3, stopReason: 'error:agent_failed' });
    expect(world.meter.requests).toHaveLength(1);
    expect(world.supervisor.reports[0]?.detail).toBe('The agent failed: TypeError.');
  });

  it('resets the restart count after progress, so that occasional failures do not end the agent (SUP-7)', async () => {
    let runs = 0;
    const world = await startWith(
      async (ctx) => {
        runs += 1;
        for (let call = 1; call <= 4; call += 1) {
          await ctx.llm(llmRequest(`call ${call}`));
          if (runs === call) throw new TypeError('Once.');
        }
        await ctx.propose(FINAL);
      },
      { model: () => 'hi' },
    );
    world.supervisor.rule = approveAll;
    await world.deliver({ manifest: { ...CUSTOM, limits: { maxRetries: 1 } } });
    await world.until('COMPLETED');
    expect(runs).toBe(5);
    expect(world.meter.paid).toHaveLength(4);
  });

  it('ends with an error when it returns without an outcome (RT-4)', async () => {
    const world = await startWith(async () => undefined);
    await world.deliver({ manifest: CUSTOM });
    const { stopReason } = await world.until('ERROR');
    expect(stopReason).toBe('error:no_outcome');
  });
});
