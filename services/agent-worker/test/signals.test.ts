import { ManualClock } from '@writ/kernel';
import { describe, expect, it, vi } from 'vitest';
import { CUSTOM, llmRequest, signal, startAgain, startWith, type Work } from './test-agent.ts';
import { World } from './world.ts';

describe('signals', () => {
  it('are delivered in order of arrival, each once (RT-3)', async () => {
    const seen: unknown[] = [];
    const world = await startWith(async (ctx) => {
      seen.push(await ctx.sleepUntilSignal('new_source_item'));
      seen.push(await ctx.sleepUntilSignal('new_source_item'));
      ctx.stop({ stopReason: 'stuck', phase: 'worker' });
    });
    await world.deliver({ manifest: CUSTOM });
    await world.until('SUSPENDED');
    await signal(world, 's-1', { payload: { item: 1 } });
    await signal(world, 's-2', { payload: { item: 2 } });
    await world.until('ERROR');
    expect(seen.slice(-2)).toEqual([{ item: 1 }, { item: 2 }]);
  });

  it('are read from the database once each, however many are pending (RT-3)', async () => {
    const most = 20;
    const seen: unknown[] = [];
    let rows = 0;
    const work: Work = async (ctx) => {
      await ctx.sleepUntilSignal('begin');
      for (let item = 1; item <= most; item += 1) {
        seen.push(await ctx.sleepUntilSignal('new_source_item'));
        // Commits the use of the signal.
        await ctx.llm(llmRequest(`item ${item}`));
      }
      ctx.stop({ stopReason: 'stuck', phase: 'worker' });
    };
    const world = await World.start({ model: () => 'hi' });
    const { store } = await startAgain(world, work);
    const counting = store.db.withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        rows += result.rows.filter((row) => 'consumed_at' in row).length;
        return result;
      },
    });
    await world.deliver({ manifest: CUSTOM });
    await world.until('SUSPENDED');
    const items = Array.from({ length: most }, (_, index) => ({ item: index + 1 }));
    for (const item of items) await signal(world, `s-${item.item}`, { payload: item });
    vi.spyOn(store.db, 'selectFrom').mockImplementation(((table: 'signals') =>
      counting.selectFrom(table)) as unknown as typeof store.db.selectFrom);
    await signal(world, 'begin', { name: 'begin' });
    await world.until('ERROR');
    expect(seen).toEqual(items);
    expect(rows).toBeGreaterThanOrEqual(most);
    expect(rows).toBeLessThan(2 * most);
  });
});

describe('a sleep', () => {
  it('ends when it is due, even if the worker was restarted in the meantime (RT-1, RT-3)', async () => {
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
