import { UnavailableError } from '@writ/kernel';
import { describe, expect, it, vi } from 'vitest';
import { RUN } from './delivery.ts';
import { approveAll } from './team.ts';
import { CUSTOM, FROZEN, signal, startAgain, startWith, type Work } from './test-agent.ts';
import { World } from './world.ts';

/** Transaction hooks: after `failNext()`, the next transaction fails with STORE_BUSY. */
function busyHooks() {
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

describe('a topic', () => {
  const FEED = { ...CUSTOM, followTopics: ['prices'], outputTopic: 'prices' };

  it('delivers each item once and in order to each subscriber of the tenant, even across a restart (AG-5, RT-3)', async () => {
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
    await signal(world, 'go', { name: 'go', runId: 'run-source' });
    for (const runId of ['run-a', 'run-b', 'run-source']) await world.until('COMPLETED', runId);
    const all = [{ number: 1 }, { number: 2 }, { number: 3 }];
    expect(received).toEqual({ 'run-a': all, 'run-b': all });
    expect(await world.lastWorker.store.db.selectFrom('follows').selectAll().execute()).toEqual([]);
  });

  it('delivers an item once when the transaction that publishes it fails and the publisher restarts (AG-5, RT-1)', async () => {
    const received: unknown[] = [];
    const hooks = busyHooks();
    let executions = 0;
    const work: Work = async (ctx) => {
      if (ctx.meta.runId === 'run-source') {
        executions += 1;
        if (executions === 1) hooks.failNext();
        await ctx.emit('prices', { number: 1 });
        return void (await ctx.reply('Published.'));
      }
      await ctx.follow('prices');
      received.push((await ctx.sleepUntilSignal('new_feed_item')).item);
      await ctx.reply('Received.');
    };
    const world = await startWith(work, {}, {}, hooks);
    await world.deliver({ runId: 'run-a', manifest: FEED });
    await world.until('SUSPENDED', 'run-a');
    await world.deliver({ runId: 'run-source', manifest: FEED });
    await world.until('COMPLETED', 'run-source');
    await world.until('COMPLETED', 'run-a');
    expect(executions).toBe(2);
    expect(received).toEqual([{ number: 1 }]);
  });

  it('gets its subscriber even if the first transaction of the subscription fails (AG-5, RT-1)', async () => {
    const hooks = busyHooks();
    let executions = 0;
    const work: Work = async (ctx) => {
      executions += 1;
      if (executions === 1) hooks.failNext();
      await ctx.follow('prices');
      await ctx.sleepUntilSignal('new_feed_item');
      await ctx.reply('Received.');
    };
    const world = await startWith(work, {}, {}, hooks);
    await world.deliver({ manifest: FEED });
    await vi.waitFor(async () =>
      expect((await world.describe()).waitingFor).toEqual(['new_feed_item']),
    );
    expect(executions).toBe(2);
    const follows = await world.lastWorker.store.db
      .selectFrom('follows')
      .select(['run_id', 'topic'])
      .execute();
    expect(follows).toEqual([{ run_id: RUN, topic: 'prices' }]);
  });

  it('delivers the items of concurrent branches even when the worker crashes between their commits (AG-5, RT-1)', async () => {
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
    const { promise: died, resolve } = Promise.withResolvers<void>();
    const released = world.faults.untilReleased();
    let isDead = false;
    const { store } = await startAgain(world, work, FROZEN, {
      before: async () => {
        if (isDead) await released;
      },
      // Simulates a crash after the first commit that published an item: this and later transactions do not return.
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
    await startAgain(world, work, FROZEN);
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
