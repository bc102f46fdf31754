import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { describe, expect, it } from 'vitest';
import { loadJournal } from '../src/store/journal.ts';
import { findSnapshot, loadItems } from '../src/store/snapshots.ts';
import { AGENT, RUN, TENANT } from './delivery.ts';
import type { FakeModel } from './fake-meter.ts';
import { approveAll } from './team.ts';
import { World } from './world.ts';

const KEY = { tenant: TENANT, runId: RUN, instance: AGENT.instance };
const SOURCE = { kind: AgentKind.INFORMATION, tools: [], outputTopic: 'articles' };
const READER = { kind: AgentKind.PERSONAL_FEED, tools: [], followTopics: ['articles'] };

/** Answers with the number of the item; never answers an item that contains `never`. */
const model: FakeModel = async (_, { messages }) => {
  const part = messages.at(-1)?.parts[0]?.kind;
  const text = part?.case === 'text' ? part.value : '';
  if (text.includes('never')) await world.faults.untilReleased();
  return `Summary ${/(\d+)/.exec(text)?.[1]}`;
};

let world: World;

async function startWorld(): Promise<void> {
  world = await World.start({ model, inFile: true });
  world.supervisor.rule = approveAll;
}

function send(number: number) {
  const { instance: agentInstance } = AGENT;
  const payloadJson = JSON.stringify({ text: `item ${number}` });
  const of = { tenant: TENANT, runId: RUN, agentInstance };
  const name = 'new_source_item';
  return world.worker.signal({ ...of, requestId: `item-${number}`, name, payloadJson });
}

/** Sends an item and waits until it is processed. */
async function process(number: number): Promise<void> {
  await send(number);
  await expect.poll(() => world.meter.paid.length, { interval: 2 }).toBe(number);
  await world.until('SUSPENDED');
}

/** The items that a run received from its topics. */
async function received(runId: string): Promise<unknown[]> {
  const { store } = world.lastWorker;
  const rows = await store.db
    .selectFrom('signals')
    .select('payload')
    .where('run_id', '=', runId)
    .where('name', '=', 'new_feed_item')
    .orderBy('position')
    .execute();
  return rows.map(({ payload }) => JSON.parse(payload).item);
}

describe('a feed', () => {
  it('replays a bounded part of its journal, independent of the number of earlier items (AG-5, RT-1)', async () => {
    await startWorld();
    const { store } = await world.startWorker();
    await world.deliver({ manifest: SOURCE, goal: 'item 1' });
    await world.until('SUSPENDED');
    const replayed: number[] = [];
    for (let number = 2; number <= 40; number += 1) {
      await process(number);
      const snapshot = await findSnapshot(store.db, KEY);
      replayed.push((await loadJournal(store.db, KEY, snapshot?.segment ?? 1)).length);
    }
    // At most eight items with three entries each: signal, model call, emit.
    expect(Math.max(...replayed)).toBeLessThanOrEqual(24);
    expect(new Set(world.meter.paid).size).toBe(40);
    const snapshot = await findSnapshot(store.db, KEY);
    const kept = await loadItems(store.db, KEY, snapshot?.items_from ?? 0);
    expect(kept).toEqual(Array.from({ length: 32 }, (_, index) => `Summary ${index + 9}`));
  });

  it('resumes after restarts, and its answer contains all items in order (AG-5, RT-1)', async () => {
    await startWorld();
    const most = 19;
    await world.startWorker();
    const manifest = { ...SOURCE, optionsJson: JSON.stringify({ max_items: most }) };
    await world.deliver({ manifest, goal: 'item 1' });
    await world.until('SUSPENDED');
    for (let number = 2; number < most; number += 1) {
      await process(number);
      if (number % 3 !== 0) continue;
      await world.lastWorker.stop();
      await world.startWorker();
    }
    await send(most);
    await world.until('COMPLETED');
    const lines = Array.from({ length: most }, (_, index) => `Summary ${index + 1}`);
    expect(world.supervisor.endings.get(RUN)?.answer).toBe(lines.join('\n'));
    expect(world.meter.paid).toHaveLength(most);
  });

  it('writes each curated item to its log, which clients can read (AG-5, RT-1)', async () => {
    await startWorld();
    await world.startWorker();
    await world.deliver({ manifest: READER, runId: 'run-reader', goal: 'I like the sea.' });
    await world.until('SUSPENDED', 'run-reader');
    await world.deliver({ manifest: SOURCE, goal: 'item 1' });
    await expect.poll(() => world.meter.paid.length, { interval: 2 }).toBe(2);
    await world.until('SUSPENDED', 'run-reader');
    const page = { tenant: TENANT, runId: 'run-reader', pageSize: 10 };
    const { entries } = await world.worker.listLogEntries(page);
    expect(entries.map(({ message, contentJson }) => [message, JSON.parse(contentJson)])).toEqual([
      ['feed.curated', { text: 'Summary 1' }],
    ]);
  });
});

describe('the answer of an agent with an output_topic', () => {
  const WRITER = { kind: AgentKind.REACT, tools: [], outputTopic: 'articles' };
  const items = () => received('run-reader');

  async function withReader(): Promise<void> {
    await startWorld();
    await world.startWorker();
    await world.deliver({ manifest: READER, runId: 'run-reader', goal: 'I like the sea.' });
    await world.until('SUSPENDED', 'run-reader');
  }

  it('is published once to the subscribers when no agent waits for it (AG-5)', async () => {
    await withReader();
    await world.deliver({ manifest: WRITER, goal: 'item 7' });
    await world.until('COMPLETED');
    expect(await items()).toEqual([{ text: 'Summary 7' }]);
    // The supervisor may cancel the run afterwards.
    const end = { tenant: TENANT, runId: RUN, requestId: 'end-1', stopReason: 'success' };
    await world.worker.cancel({ ...end, answer: 'Summary 7' });
    expect(await items()).toHaveLength(1);
  });

  it('is a reply to the requesting agent and is not published (AG-3, AG-5)', async () => {
    await withReader();
    await world.deliver({ manifest: WRITER, goal: 'item 7', from: 'lead-1' });
    await world.until('COMPLETED');
    expect(await items()).toEqual([]);
  });

  it('is published by a Cancel with the stop reason success, but not by a Cancel with another stop reason (AG-5, RT-3)', async () => {
    await withReader();
    await world.deliver({ manifest: WRITER, goal: 'never' });
    const end = { tenant: TENANT, runId: RUN, requestId: 'end-1' };
    await world.worker.cancel({ ...end, stopReason: 'success', answer: 'Approved.' });
    expect(await items()).toEqual([{ text: 'Approved.' }]);
    await world.deliver({ manifest: WRITER, runId: 'run-third', requestId: 'd-3', goal: 'never' });
    await world.worker.cancel({
      ...end,
      runId: 'run-third',
      stopReason: 'cancelled',
      answer: 'No.',
    });
    expect(await items()).toHaveLength(1);
  });
});
