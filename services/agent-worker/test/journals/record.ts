import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isTerminal, type RunState } from '@writ/kernel';
import { vi } from 'vitest';
import { keyOf } from '../../src/store/keys.ts';
import { findSnapshot, loadItems } from '../../src/store/snapshots.ts';
import type { WorkerStore } from '../../src/store/worker-store.ts';
import { RUN } from '../delivery.ts';
import type { FakeModel } from '../fake-meter.ts';
import { approveAll } from '../team.ts';
import { World } from '../world.ts';
import {
  AGENT_COLUMNS,
  inOrder,
  linesOf,
  RELEASE,
  type RecordedAgent,
  recordingsOf,
} from './recorded-agent.ts';
import type { Story } from './stories.ts';

/** Module with the agents in TypeScript. */
export const AGENTS_MODULE = join(import.meta.dirname, 'agents.ts');

/** Runs a story on a worker and writes the journals of its agents. */
export async function record(name: string, story: Story): Promise<void> {
  const world = await World.start({ model: modelOf(story) });
  const { store } = await world.startWorker({ agentModules: [AGENTS_MODULE] });
  world.supervisor.rule = story.rule ?? approveAll;
  if (story.children !== undefined) world.withChildren(story.children);
  const { manifest, goal } = story;
  if (story.isSecond === true) {
    await world.deliver({ manifest, goal: 'Earlier.', runId: 'run-0' });
    await world.until('COMPLETED', 'run-0');
    world.meter.model = modelOf(story);
  }
  story.prepare?.(world);
  await world.deliver({ manifest, ...(goal !== undefined && { goal }) });
  await story.act?.(world);
  const agents = await vi.waitFor(() => ended(store), { timeout: 30_000 });
  writeFileSync(join(recordingsOf(RELEASE), `${name}.jsonl`), linesOf(agents));
}

/**
 * Returns a model that answers each agent, by its name, with the answers of the story in order; the last answer
 * repeats.
 */
function modelOf({ answers = {} }: Story): FakeModel {
  const turns = new Map<string, number>();
  return (_, __, instance) => {
    const name = instance.replace(/-\d+$/, '');
    const turn = turns.get(name) ?? 0;
    turns.set(name, turn + 1);
    return answers[name]?.[turn] ?? answers[name]?.at(-1) ?? 'No answer.';
  };
}

/** Returns the agents of the run once all have ended. */
async function ended(store: WorkerStore): Promise<RecordedAgent[]> {
  const rows = await store.db
    .selectFrom('agents')
    .selectAll()
    .where('run_id', '=', RUN)
    .orderBy('instance')
    .execute();
  const states = rows.map(({ instance, state }) => `${instance} is ${state}`);
  if (!rows.every(({ state }) => isTerminal(state as RunState))) throw new Error(states.join());
  return await Promise.all(rows.map((row) => recordingOf(store, row)));
}

async function recordingOf(
  store: WorkerStore,
  row: Parameters<typeof keyOf>[0] & RecordedAgent['agent'],
): Promise<RecordedAgent> {
  const key = keyOf(row);
  const { db } = store;
  const of = (table: 'journal' | 'inbox' | 'signals') =>
    db.selectFrom(table).where('run_id', '=', key.runId).where('instance', '=', key.instance);
  const entries = await of('journal').selectAll().execute();
  const payloads = await db
    .selectFrom('payloads')
    .selectAll()
    .where('run_id', '=', key.runId)
    .execute();
  const contents = new Map(payloads.map(({ digest, content }) => [digest, content]));
  const signals = await of('signals').select('name').orderBy('name').execute();
  const inbox = await of('inbox').select('message').execute();
  const snapshot = await findSnapshot(db, key);
  const agent = Object.fromEntries(AGENT_COLUMNS.map((column) => [column, row[column]]));
  return {
    agent: agent as RecordedAgent['agent'],
    inbox: inbox.map(({ message }) => JSON.parse(message)),
    signals: [...new Set(signals.map(({ name }) => name))],
    ...(snapshot && {
      checkpoint: {
        segment: snapshot.segment,
        prologue: snapshot.prologue,
        position: snapshot.position,
        items_from: snapshot.items_from,
        state: JSON.parse(snapshot.state),
        receipts: JSON.parse(snapshot.receipts),
        items: await loadItems(db, key, 0),
      },
    }),
    entries: inOrder(
      entries.map(({ segment, branch, position, part, kind, args_digest, ...entry }) => ({
        segment,
        branch,
        position: Number(position),
        part,
        kind,
        args_digest,
        value: stable(JSON.parse(entry.value ?? contents.get(entry.payload_digest ?? '') ?? '')),
      })),
    ),
  };
}

/** Returns a value without its writs, which differ in every recording. */
function stable(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, withoutWrits));
}

function withoutWrits(name: string, value: unknown): unknown {
  if (name === 'writ' || name === 'writExpiresAt') return undefined;
  // The decision of an approval is JSON in a signal.
  const isText = name === 'decision' && typeof value === 'string';
  return isText ? JSON.stringify(stable(JSON.parse(value))) : value;
}
