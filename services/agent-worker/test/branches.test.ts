import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { ResultKind } from '@writ/contracts/writ/tool/v1/tool_pb';
import { type AgentDefinition, ManualClock, UnavailableError } from '@writ/kernel';
import { describe, expect, it, vi } from 'vitest';
import { createCustomAgent } from '../src/agents/custom/custom-agent.ts';
import type { AgentContext, AgentFactory } from '../src/runtime/agent.ts';
import { openWorkerStore } from '../src/store/worker-store.ts';
import { AGENT, RUN, TENANT } from './delivery.ts';
import { InterceptedStore, type Interception } from './intercepted-store.ts';
import { approveAll } from './team.ts';
import { World, type WorldOptions } from './world.ts';

const CUSTOM = { kind: AgentKind.CUSTOM } as const;

type Work = (ctx: AgentContext) => Promise<void>;

async function startWith(work: Work, options: WorldOptions = {}, settings = {}): Promise<World> {
  const world = await World.start(options);
  world.supervisor.rule = approveAll;
  await startAgain(world, work, settings);
  return world;
}

async function startAgain(world: World, work: Work, settings = {}, hooks: Interception = {}) {
  const custom = (_: unknown, instance: string) => ({ id: instance, kind: 'custom', run: work });
  return await world.startWorker(settings, {
    agents: { custom },
    openStore: async (location) => new InterceptedStore(await openWorkerStore(location), hooks),
  });
}

/** Hooks of a store whose next transaction can fail. */
function busyStore() {
  let isBusy = false;
  return {
    failNext: () => {
      isBusy = true;
    },
    before: async () => {
      if (!isBusy) return;
      isBusy = false;
      throw new UnavailableError('STORE_BUSY', 'The database is busy.');
    },
  };
}

function signal(world: World, requestId: string, name: string, runId = RUN) {
  const { instance: agentInstance } = AGENT;
  const signalled = { requestId, tenant: TENANT, runId, agentInstance, name };
  return world.worker.signal({ ...signalled, payloadJson: JSON.stringify({ of: requestId }) });
}

function llmRequest(text: string) {
  const messages = [{ role: 'user', text }] as const;
  return { model: 'small', messages, json: false, requireContent: false };
}

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
    await signal(world, 'go', 'go');
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
      await signal(world, `s-${name}`, name);
      await vi.waitFor(async () => expect((await world.describe()).waitingFor).toEqual(left));
    }
    await signal(world, 's-c', 'c');
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toBe('["s-a",["s-b","s-c"]]');
    expect(world.meter.paid).toHaveLength(3);
  });

  it('suspend the agent even when a branch catches its own wait (RT-1, RT-2)', async () => {
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
      await signal(world, `s-${name}`, name);
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
    await signal(world, 'go', 'go');
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
      await ctx.all(Array.from({ length: branches }, () => readUser));
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

describe('a sleep', () => {
  it('ends when it is due, even if the worker was down at that time (RT-1, RT-3)', async () => {
    const clock = new ManualClock(new Date());
    const work: Work = async (ctx) => {
      await ctx.sleep(60_000);
      await ctx.reply('Awake.');
    };
    const world = await startWith(work, { inFile: true, clock });
    await world.deliver({ manifest: CUSTOM });
    await world.until('SUSPENDED');
    await world.lastWorker.stop();
    clock.advance(59_000);
    await startAgain(world, work);
    expect((await world.describe()).waitingFor).toEqual(['timer:op-0']);
    clock.advance(1_001);
    await world.until('COMPLETED');
  });
});

describe('a topic', () => {
  const FEED = { ...CUSTOM, followTopics: ['prices'], outputTopic: 'prices' };

  it('delivers each item once and in order to each subscriber of the tenant, even across a crash (AG-5, RT-3)', async () => {
    const received: Record<string, unknown[]> = {};
    const work: Work = async (ctx) => {
      const { runId } = ctx.meta;
      if (runId === 'run-source') {
        for (const number of [1, 2, 3]) await ctx.emit('prices', { number });
        await ctx.sleepUntilSignal('go');
        return void (await ctx.reply('Published.'));
      }
      await ctx.follow('prices');
      const items: unknown[] = [];
      received[runId] = items;
      for (let n = 0; n < 3; n += 1) items.push((await ctx.sleepUntilSignal('new_feed_item')).item);
      await ctx.reply('Received.');
    };
    const world = await startWith(work, { inFile: true });
    for (const runId of ['run-a', 'run-b']) {
      await world.deliver({ runId, manifest: FEED });
      await world.until('SUSPENDED', runId);
    }
    await world.deliver({ runId: 'run-source', manifest: FEED });
    await world.until('SUSPENDED', 'run-source');
    await world.lastWorker.stop();
    await startAgain(world, work);
    await signal(world, 'go', 'go', 'run-source');
    for (const runId of ['run-a', 'run-b', 'run-source']) await world.until('COMPLETED', runId);
    const all = [{ number: 1 }, { number: 2 }, { number: 3 }];
    expect(received).toEqual({ 'run-a': all, 'run-b': all });
    expect(await world.lastWorker.store.db.selectFrom('follows').selectAll().execute()).toEqual([]);
  });

  it('receives an item whose first transaction fails, even when the agent is restarted (AG-5, RT-1)', async () => {
    const received: unknown[] = [];
    const busy = busyStore();
    let runs = 0;
    const work: Work = async (ctx) => {
      if (ctx.meta.runId === 'run-source') {
        runs += 1;
        if (runs === 1) busy.failNext();
        await ctx.emit('prices', { number: 1 });
        return void (await ctx.reply('Published.'));
      }
      await ctx.follow('prices');
      received.push((await ctx.sleepUntilSignal('new_feed_item')).item);
      await ctx.reply('Received.');
    };
    const world = await World.start();
    world.supervisor.rule = approveAll;
    await startAgain(world, work, {}, busy);
    await world.deliver({ runId: 'run-a', manifest: FEED });
    await world.until('SUSPENDED', 'run-a');
    await world.deliver({ runId: 'run-source', manifest: FEED });
    await world.until('COMPLETED', 'run-source');
    await world.until('COMPLETED', 'run-a');
    expect(runs).toBe(2);
    expect(received).toEqual([{ number: 1 }]);
  });

  it('is subscribed to after the first transaction of the subscription fails (AG-5, RT-1)', async () => {
    const busy = busyStore();
    let runs = 0;
    const work: Work = async (ctx) => {
      runs += 1;
      if (runs === 1) busy.failNext();
      await ctx.follow('prices');
      await ctx.sleepUntilSignal('new_feed_item');
      await ctx.reply('Received.');
    };
    const world = await World.start();
    world.supervisor.rule = approveAll;
    const { store } = await startAgain(world, work, {}, busy);
    await world.deliver({ manifest: FEED });
    await vi.waitFor(async () =>
      expect((await world.describe()).waitingFor).toEqual(['new_feed_item']),
    );
    expect(runs).toBe(2);
    const follows = await store.db.selectFrom('follows').select(['run_id', 'topic']).execute();
    expect(follows).toEqual([{ run_id: RUN, topic: 'prices' }]);
  });

  it('receives the items of concurrent branches even when the worker crashes between their commits (AG-5, RT-1)', async () => {
    const received: unknown[] = [];
    const work: Work = async (ctx) => {
      if (ctx.meta.runId === 'run-source') {
        await ctx.all([1, 2].map((number) => (one) => one.emit('prices', { number })));
        return void (await ctx.reply('Published.'));
      }
      await ctx.follow('prices');
      const items: unknown[] = [];
      for (const _ of [1, 2]) items.push((await ctx.sleepUntilSignal('new_feed_item')).item);
      received.push(items);
      await ctx.reply('Received.');
    };
    const world = await World.start({ inFile: true });
    world.supervisor.rule = approveAll;
    const settings = { maxConcurrentAgents: 1, leaseTtlMs: 3_600_000 };
    const { promise: died, resolve } = Promise.withResolvers<void>();
    const released = world.faults.untilReleased();
    let isDead = false;
    const { store } = await startAgain(world, work, settings, {
      before: async () => {
        if (isDead) await released;
      },
      // Crashes after the first commit that published an item.
      after: async () => {
        const items = await store.db
          .selectFrom('signals')
          .select('request_id')
          .where('name', '=', 'new_feed_item')
          .execute();
        if (items.length === 0) return;
        isDead = true;
        resolve();
        await released;
      },
    });
    await world.deliver({ runId: 'run-a', manifest: FEED });
    await world.until('SUSPENDED', 'run-a');
    void world.deliver({ runId: 'run-source', manifest: FEED });
    await died;
    await startAgain(world, work, settings);
    await world.until('COMPLETED', 'run-source');
    await world.until('COMPLETED', 'run-a');
    expect(received).toEqual([[{ number: 1 }, { number: 2 }]]);
  });

  it('is rejected by emit unless it is the output_topic of the manifest (AG-5, SUP-9)', async () => {
    const world = await startWith(async (ctx) => {
      const refused = await ctx.emit('gossip', {}).catch((error) => error);
      await ctx.reply(String(refused.reason));
    });
    await world.deliver({ manifest: FEED });
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toBe('TOPIC_NOT_ALLOWED');
  });
});

describe('a TypeScript agent', () => {
  const definition: AgentDefinition = {
    name: 'adder',
    async run(agent, { goal }) {
      const seen = await agent.step(1, () => agent.tool('get_refund_context', { user_id: 42 }));
      const refused = await agent.tool('issue_refund', { amount_usd: 5 });
      const { text } = await agent.sleepUntilSignal('more');
      return [goal, seen.ok, refused.ok ? 'paid' : refused.error, String(text)].join(' ');
    },
  };

  it('runs steps, tools and signal waits, and its return value is reviewed (AG-1, AG-10, SV-1)', async () => {
    const world = await World.start();
    const custom: AgentFactory = (manifest, instance) =>
      createCustomAgent(definition, manifest, instance);
    await world.startWorker({}, { agents: { custom } });
    world.supervisor.rule = (raw) =>
      raw.includes('issue_refund')
        ? { verdict: 'block', reason: 'not_yours', action: JSON.parse(raw) }
        : approveAll(raw);
    await world.deliver({ manifest: CUSTOM, goal: 'Look:' });
    await world.until('SUSPENDED');
    const { instance: agentInstance } = AGENT;
    const more = { requestId: 's', tenant: TENANT, runId: RUN, agentInstance, name: 'more' };
    await world.worker.signal({ ...more, payloadJson: '{"text":"thanks"}' });
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toBe(
      'Look: true supervisor_block:not_yours thanks',
    );
    expect(world.gateway.executed).toEqual(['op-0 get_refund_context']);
  });
});

describe('a flow', () => {
  it('runs its stages in order, emits its start and end once, and stops with a failed stage (AG-1, HK-1)', async () => {
    const world = await World.start({
      model: (_, __, agent) => (agent.startsWith('bad') ? '' : `${agent} done`),
    });
    const worker = await world.startWorker();
    world.supervisor.rule = approveAll;
    const child = { kind: AgentKind.REACT, tools: [] };
    world.withChildren({ one: child, two: child, bad: child });
    const flow = (runId: string, steps: unknown[]) =>
      world.deliver({
        runId,
        manifest: {
          kind: AgentKind.FLOW,
          subAgents: [{ name: 'one' }, { name: 'two' }, { name: 'bad' }],
          optionsJson: JSON.stringify({ steps }),
        },
      });
    await flow(RUN, ['one', { parallel: ['one', 'two'] }]);
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toBe('one: one-2 done\n\ntwo: two-1 done');
    await flow('run-2', ['bad', 'two']);
    const { stopReason } = await world.until('ERROR', 'run-2');
    expect(stopReason).toBe('error:flow_target_failed');
    await flow('run-3', ['unknown']);
    expect((await world.until('ERROR', 'run-3')).stopReason).toBe('error:bad_flow');
    await worker.stop();
    const names = new Map<HookEventType, string>([
      [HookEventType.FLOW_START, 'START'],
      [HookEventType.FLOW_END, 'END'],
    ]);
    const reported = world.events.flatMap(({ runId, type, status }) =>
      names.has(type) ? [`${runId} ${names.get(type)} ${status}`.trim()] : [],
    );
    expect(reported).toEqual([
      'run-1 START',
      'run-1 END ok',
      'run-2 START',
      'run-2 END error:flow_target_failed',
    ]);
  });
});

describe('a definition', () => {
  it('is fixed for a started run; changes affect new runs only (RT-1)', async () => {
    const world = await startWith(async (ctx) => {
      await ctx.sleepUntilSignal('go');
      await ctx.reply(JSON.stringify(ctx.manifest.options));
    });
    await world.deliver({ manifest: { ...CUSTOM, optionsJson: '{"version":1}' } });
    await world.until('SUSPENDED');
    await world.deliver({ runId: 'run-2', manifest: { ...CUSTOM, optionsJson: '{"version":2}' } });
    for (const runId of [RUN, 'run-2']) {
      await world.until('SUSPENDED', runId);
      await signal(world, 'go', 'go', runId);
      await world.until('COMPLETED', runId);
    }
    expect(world.supervisor.endings.get(RUN)?.answer).toBe('{"version":1}');
    expect(world.supervisor.endings.get('run-2')?.answer).toBe('{"version":2}');
  });
});
