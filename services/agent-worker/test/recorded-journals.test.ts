import { mkdirSync, rmSync } from 'node:fs';
import { derivedId } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { loadAgentModules } from '../src/agents/load-modules.ts';
import { openWorkerStore, type WorkerStore } from '../src/store/worker-store.ts';
import { AGENTS_MODULE, record } from './journals/record.ts';
import {
  RELEASE,
  type RecordedAgent,
  readRecordings,
  recordingsOf,
} from './journals/recorded-agent.ts';
import { lineOf, type ResumePoint, replay } from './journals/replay.ts';
import { STORIES } from './journals/stories.ts';

/** Set by scripts/record-journals.ts: the stories are recorded instead of replayed. */
const isRecording = process.env.WRIT_RECORD_JOURNALS === 'true';

/** All kinds of operations. */
const KINDS =
  'all ask emit end flow follow llm log now random recall review signal sleep spawn tool tools trip';

/**
 * Returns the points from which a recorded agent is resumed: its beginning, its end, and points in between, with and
 * without its checkpoint.
 */
function pointsOf({ entries, checkpoint }: RecordedAgent): ResumePoint[] {
  const from = (first: number, fromCheckpoint: boolean): ResumePoint[] => {
    const { length } = entries;
    const at = [0, 1 / 4, 1 / 2, 3 / 4, 1].map(
      (part) => first + Math.floor((length - first) * part),
    );
    return [...new Set([...at, Math.max(first, length - 1)])].map((count) => ({
      entries: count,
      fromCheckpoint,
    }));
  };
  if (checkpoint === undefined) return from(0, false);
  const folded = entries.findIndex(({ segment }) => segment === checkpoint.segment);
  const first = folded === -1 ? entries.length : folded;
  const begun = from(0, false).filter(({ entries: count }) =>
    entries.slice(0, count).every(({ segment }) => segment <= 1),
  );
  return [...begun, ...from(first, true)];
}

function recordAll(): void {
  beforeAll(() => {
    rmSync(recordingsOf(RELEASE), { recursive: true, force: true });
    mkdirSync(recordingsOf(RELEASE), { recursive: true });
  });
  it.each(Object.entries(STORIES))('records %s', async (name, story) => {
    vi.spyOn(Math, 'random').mockReturnValue(0.25);
    await record(name, story);
  });
}

function replayAll(): void {
  const recordings = readRecordings();
  let store: WorkerStore;
  let modules: Awaited<ReturnType<typeof loadAgentModules>>;
  beforeAll(async () => {
    store = await openWorkerStore({ dialect: 'sqlite', file: ':memory:' });
    modules = await loadAgentModules([AGENTS_MODULE]);
  });
  afterAll(() => store.close());

  it('is recorded for every kind of agent and operation (RT-1, BD-6)', () => {
    const agents = [...recordings.values()].flat();
    const ofRelease = [...recordings.keys()].filter((name) => name.startsWith(`${RELEASE}/`));
    expect(ofRelease.length).toBeGreaterThanOrEqual(50);
    expect(ofRelease.toSorted()).toEqual(
      Object.keys(STORIES)
        .map((name) => `${RELEASE}/${name}`)
        .toSorted(),
    );
    expect(new Set(agents.map(({ agent }) => agent.kind))).toEqual(
      new Set([
        'react',
        'json-action',
        'orchestrator',
        'user-proxy',
        'information',
        'personal-feed',
        'flow',
        'custom',
      ]),
    );
    const kinds = new Set(agents.flatMap(({ entries }) => entries.map(({ kind }) => kind)));
    expect([...kinds].toSorted().join(' ')).toBe(KINDS);
    expect(agents.filter(({ checkpoint }) => checkpoint !== undefined).length).toBeGreaterThan(3);
  });

  it.each([...recordings])(
    'produces the recorded entries on this build, from every resume point: %s (RT-1, BD-6)',
    async (name, agents) => {
      vi.spyOn(Math, 'random').mockReturnValue(0.25);
      for (const recorded of agents) {
        const { instance, stop_reason: stopReason } = recorded.agent;
        for (const point of pointsOf(recorded)) {
          const tenant = derivedId('point', name, JSON.stringify({ instance, ...point }));
          const replayed = await replay(store, modules, recorded, { tenant, point });
          const what = { instance, ...point };
          expect({ ...what, entries: replayed.entries.toSorted() }).toEqual({
            ...what,
            entries: recorded.entries.map(lineOf).toSorted(),
          });
          // These agents were cancelled or preempted, so their recordings stop before the agents return.
          const isCut = stopReason === 'paused' || stopReason === 'cancelled';
          const outcomes = isCut ? ['drained', 'suspended'] : [stopReason];
          expect(outcomes, JSON.stringify(what)).toContain(replayed.outcome);
        }
      }
    },
  );
}

if (isRecording) describe('the recorder', recordAll);
else describe('a run that an earlier build started', replayAll);
