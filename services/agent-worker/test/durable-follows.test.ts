import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { describe, expect, it } from 'vitest';
import { holdTopicItem, MAX_HELD_ITEMS } from '../src/app/agents/hold-topic-item.ts';
import type { AgentContext } from '../src/runtime/agent.ts';
import { openWorkerStore } from '../src/store/worker-store.ts';
import { AGENT, RUN, TENANT } from './delivery.ts';
import type { FakeModel } from './fake-meter.ts';
import { crashAt, InterceptedStore } from './intercepted-store.ts';
import { approveAll } from './team.ts';
import { World } from './world.ts';

const { PERMANENT, RUN: UNTIL_END } = HistoryRetention;
const SOURCE = { kind: AgentKind.INFORMATION, tools: [], outputTopic: 'articles' };
const FOLLOWER = { kind: AgentKind.CUSTOM, followTopics: ['articles', 'prices'] };

/** Returns the manifest of a personal feed with a durable subscription. */
function reader(most: number) {
  const optionsJson = JSON.stringify({ max_items: most, durable_follows: true });
  return { kind: AgentKind.PERSONAL_FEED, tools: [], followTopics: ['articles'], optionsJson };
}

/** Settings of a worker that a test abandons: its leases outlast the test. */
const FROZEN = { maxConcurrentAgents: 2, leaseTtlMs: 3_600_000 } as const;
/** Minimum number of commits from the first of two published items to the end of the run that reads them. */
const COMMITS = 12;

/** Answers with the number of the item. */
const model: FakeModel = (_, { messages }) => {
  const part = messages.at(-1)?.parts[0]?.kind;
  return `Summary ${/(\d+)/.exec(part?.case === 'text' ? part.value : '')?.[1]}`;
};

let world: World;

async function startWorld(work?: (ctx: AgentContext) => Promise<void>): Promise<void> {
  world = await World.start({ model, inFile: true });
  world.supervisor.rule = approveAll;
  if (work === undefined) await world.startWorker();
  else {
    const custom = (_: unknown, instance: string) => ({ id: instance, kind: 'custom', run: work });
    await world.startWorker({}, { agents: { custom } });
  }
}

function signal(runId: string, requestId: string, name: string, payload = {}) {
  const payloadJson = JSON.stringify(payload);
  const to = { tenant: TENANT, runId, agentInstance: AGENT.instance };
  return world.worker.signal({ ...to, requestId, name, payloadJson });
}

/** Sends an item to the source, which publishes its summary. */
function sendItem(number: number) {
  return signal(RUN, `item-${number}`, 'new_source_item', { text: `item ${number}` });
}

/** Publishes one more item; resolves when it is published. */
async function publish(number: number): Promise<void> {
  await sendItem(number);
  const emits = () =>
    world.lastWorker.store.db
      .selectFrom('journal')
      .select('position')
      .where('run_id', '=', RUN)
      .where('kind', '=', 'emit')
      .execute();
  await expect.poll(async () => (await emits()).length, { interval: 2 }).toBe(number);
}

/** Ends a run as the supervisor does. */
function end(runId: string, retention: HistoryRetention) {
  const order = { tenant: TENANT, runId, requestId: `end-${runId}`, stopReason: 'success' };
  return world.worker.cancel({ ...order, retention });
}

function follows() {
  return world.lastWorker.store.db.selectFrom('follows').select(['run_id', 'topic']).execute();
}

/** Starts a world in which a run of the reader subscribes, reads the first item and ends. */
async function readFirstItem(): Promise<void> {
  await startWorld();
  await world.deliver({ runId: 'run-a', manifest: reader(1), goal: 'Sea.' });
  await world.until('SUSPENDED', 'run-a');
  await world.deliver({ manifest: SOURCE, goal: 'item 1' });
  await world.until('COMPLETED', 'run-a');
  await end('run-a', PERMANENT);
}

const answerOf = (runId: string) => world.supervisor.endings.get(runId)?.answer;

describe('a durable subscription', () => {
  it('continues in the next run of the agent in its session: each item is read once and in order, across a restart (AG-5, RT-3)', async () => {
    await readFirstItem();
    await publish(2);
    await world.lastWorker.stop();
    await world.startWorker();
    await publish(3);

    // Another agent of the session subscribes separately.
    const other = { name: 'other', instance: 'other-1' };
    const request = { runId: 'run-other', requestId: 'd-other', goal: 'Land.', agent: other };
    await world.deliver({ ...request, manifest: { ...reader(1), name: 'other' } });
    await world.until('SUSPENDED', 'run-other', 'other');
    await world.deliver({ runId: 'run-b', manifest: reader(2), goal: 'Sea.' });
    await world.until('COMPLETED', 'run-b');
    await publish(4);
    await world.deliver({ runId: 'run-c', manifest: reader(1), goal: 'Sea.' });
    await world.until('COMPLETED', 'run-c');
    await world.until('COMPLETED', 'run-other', 'other');
    expect(['run-a', 'run-b', 'run-c', 'run-other/other-1'].map(answerOf)).toEqual([
      'Summary 1',
      'Summary 2\nSummary 3',
      'Summary 4',
      'Summary 4',
    ]);
  });

  it('keeps the unread items of each topic until the next run subscribes to it, even without `durable` (AG-5)', async () => {
    const read: unknown[] = [];
    await startWorld(async (ctx) => {
      const { runId } = ctx.meta;
      if (runId === RUN) {
        for (const number of [1, 2]) await ctx.emit('articles', { number });
        return void (await ctx.reply('Published.'));
      }
      await ctx.follow('articles', { durable: runId === 'run-a' });
      if (runId === 'run-a') {
        await ctx.follow('prices', { durable: true });
        await ctx.sleepUntilSignal('end');
        return void (await ctx.reply('Ended.'));
      }
      for (const _ of [1, 2]) read.push((await ctx.sleepUntilSignal('new_feed_item')).item);
      await ctx.reply('Read.');
    });
    await world.deliver({ runId: 'run-a', manifest: FOLLOWER });
    await world.until('SUSPENDED', 'run-a');
    await world.deliver({ manifest: { ...FOLLOWER, outputTopic: 'articles' } });
    await world.until('COMPLETED');
    await signal('run-a', 's-1', 'end');
    await world.until('COMPLETED', 'run-a');
    expect(await follows()).toHaveLength(2);
    await world.deliver({ runId: 'run-b', manifest: FOLLOWER });
    await world.until('COMPLETED', 'run-b');
    expect(read).toEqual([{ number: 1 }, { number: 2 }]);
    expect(await follows()).toEqual([{ run_id: 'run-a', topic: 'prices' }]);
  });

  it('of two concurrent runs of an agent is kept only for the run that ends last (AG-5)', async () => {
    await startWorld(async (ctx) => {
      await ctx.follow('articles', { durable: true });
      await ctx.sleepUntilSignal('end');
      await ctx.reply('Ended.');
    });
    for (const runId of ['run-a', 'run-b']) {
      await world.deliver({ runId, manifest: FOLLOWER });
      await world.until('SUSPENDED', runId);
    }
    expect(await follows()).toHaveLength(2);
    for (const runId of ['run-a', 'run-b']) {
      await signal(runId, `end-${runId}`, 'end');
      await world.until('COMPLETED', runId);
    }
    expect(await follows()).toEqual([{ run_id: 'run-b', topic: 'articles' }]);
  });

  it('requires the retention PERMANENT, and ends when the content of its run is deleted (AG-5, SUP-4)', async () => {
    await startWorld(async (ctx) => {
      const error = await ctx.follow('articles', { durable: true }).catch((reason) => reason);
      await ctx.reply(error?.reason ?? 'Followed.');
    });
    await world.deliver({ runId: 'run-a', manifest: FOLLOWER, retention: UNTIL_END });
    await world.until('COMPLETED', 'run-a');
    expect(answerOf('run-a')).toBe('FOLLOW_NOT_RETAINED');
    await world.deliver({ runId: 'run-b', manifest: FOLLOWER });
    await world.until('COMPLETED', 'run-b');
    expect(await follows()).toEqual([{ run_id: 'run-b', topic: 'articles' }]);
    await end('run-b', UNTIL_END);
    expect(await follows()).toEqual([]);
  });

  it('keeps a bounded number of unread items, and deletes the oldest (AG-5, BD-1)', async () => {
    await startWorld();
    const { store } = world.lastWorker;
    const key = { tenant: TENANT, runId: 'run-a', instance: AGENT.instance };
    const item = (number: number) => ({ id: `i-${number}`, name: 'new_feed_item', payload: '{}' });
    // Split into several transactions, so that no transaction exceeds the time limit on a busy machine.
    for (let first = 0; first <= MAX_HELD_ITEMS; first += 50) {
      const last = Math.min(first + 49, MAX_HELD_ITEMS);
      await store.transaction(async (trx) => {
        for (let number = first; number <= last; number += 1) {
          await holdTopicItem(trx, key, item(number), new Date());
        }
      });
    }
    const held = await store.db
      .selectFrom('signals')
      .select('request_id')
      .orderBy('position')
      .execute();
    expect(held).toHaveLength(MAX_HELD_ITEMS);
    expect(held[0]).toEqual({ request_id: 'i-1' });
  });
});

describe('a worker that crashes', () => {
  /** Publishes two items and reads them in the next run of the subscriber; repeats the requests after a crash. */
  async function publishAndRead(): Promise<void> {
    for (const number of [2, 3]) await sendItem(number);
    await world.deliver({ runId: 'run-b', manifest: reader(2), goal: 'Sea.' });
    await world.until('COMPLETED', 'run-b');
  }

  // A crash after one commit is usually equivalent to a crash before the next commit.
  for (const [moment, each] of [
    ['before', 1],
    ['after', 3],
  ] as const) {
    for (let commit = each; commit <= COMMITS; commit += each) {
      it(`immediately ${moment} commit ${commit} loses and repeats no item of a durable subscription (AG-5, RT-1, RT-3)`, async () => {
        await readFirstItem();
        await world.lastWorker.stop();
        const { hooks, died } = crashAt(world.faults, moment, commit);
        await world.startWorker(FROZEN, {
          openStore: async (location) =>
            new InterceptedStore(await openWorkerStore(location), hooks),
        });
        const driving = publishAndRead();
        await Promise.race([died, driving.catch(() => died)]);
        const { store } = await world.startWorker(FROZEN);
        await publishAndRead();
        expect(answerOf('run-b')).toBe('Summary 2\nSummary 3');
        const { db } = store;
        const unread = db
          .selectFrom('signals')
          .select('request_id')
          .where('consumed_at', 'is', null);
        expect(await unread.execute()).toEqual([]);
      });
    }
  }
});
