import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { fromBinary } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { WritClient } from '@writ/client';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { type RunEvent, RunEventSchema } from '@writ/contracts/writ/run/v1/run_pb';
import { isWritError, outcomeOf } from '@writ/kernel';
import { seeded } from '@writ/testing/random';
import { untilAdmitted } from './admitted.ts';
import { LEAK_QUERIES, rowsOf } from './leaks.ts';
import { type RacePlatform, startRacePlatform } from './race-platform.ts';

/** Share of the runs with each competing end; a run can have several. */
const CANCELLED = 0.5;
const TIMED_OUT = 0.4;
const HALTED = 0.3;
/** Share of the runs in which one agent preempts another. */
const TEAMS = 0.25;
const CONCURRENCY = 24;

/**
 * Races the finish of each run against a cancellation, a deadline, a halt that ends the run, and preemption,
 * all close to the natural end of the run. Each run has one terminal state and one result, each agent one RUN_END, and
 * no resource leaks (RT-4, AG-7, SUP-8).
 */
export async function races({ runs, seed }: { readonly runs: number; readonly seed: number }) {
  const random = seeded(seed);
  const platform = await startRacePlatform();
  try {
    const seen = new Map<string, string>();
    const pace = new Pace();
    let next = 0;
    const driveNext = async () => {
      while (next < runs) {
        next += 1;
        const [runId, stopReason] = await race(platform.client, { number: next, random, pace });
        seen.set(runId, stopReason);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, driveNext));
    await platform.stop();
    const ends = assertEndedOnce(platform, seen);
    const pauses = rowsOf(platform.dataDir, 'spawn-budget', 'SELECT total_pauses FROM pools');
    const preempted = pauses.filter((row) => Number(row.total_pauses) > 0).length;
    return { runs: seen.size, ...countsOf(seen.values()), ...ends, 'with a preemption': preempted };
  } finally {
    await platform.stop();
    platform.remove();
  }
}

/** Moving average of the duration of successful runs by agent, milliseconds. */
class Pace {
  readonly #ms = new Map([
    ['solo', 200],
    ['lead', 800],
  ]);

  of(agent: string): number {
    return this.#ms.get(agent) ?? 0;
  }

  took(agent: string, ms: number): void {
    this.#ms.set(agent, this.of(agent) * 0.8 + ms * 0.2);
  }
}

/**
 * Runs one agent with randomly selected competing ends; returns the run id and the stop reason that the watcher
 * received.
 */
async function race(
  client: WritClient,
  { number, random, pace }: { number: number; random: () => number; pace: Pace },
): Promise<[runId: string, stopReason: string]> {
  const agent = random() < TEAMS ? 'lead' : 'solo';
  /** A moment close to the natural end, whole milliseconds. */
  const moment = () => Math.ceil(pace.of(agent) * (0.2 + random() * 1.1));
  const draw = (share: number) => (random() < share ? moment() : undefined);
  const [cancelAt, deadlineAt, haltAt] = [draw(CANCELLED), draw(TIMED_OUT), draw(HALTED)];
  const started = performance.now();
  const request = {
    requestId: `race-${number}`,
    agent,
    goal: 'Race.',
    ...(deadlineAt !== undefined && { runBudget: { deadline: durationFromMs(deadlineAt) } }),
  };
  const { run } = await untilAdmitted(() => client.runs.startRun(request));
  const { runId = '', tenant = '' } = run ?? {};
  const at = async (ms: number | undefined, act: () => Promise<unknown>): Promise<void> => {
    if (ms === undefined) return;
    await pause(Math.max(0, started + ms - performance.now()));
    await ignoreEnded(act());
  };
  const [events] = await Promise.all([
    Array.fromAsync(client.runs.watchRun({ runId })),
    at(cancelAt, () => client.runs.cancelRun({ requestId: `cancel-${number}`, runId })),
    at(haltAt, () => haltRun(client, { requestId: `halt-${number}`, tenant, runId })),
  ]);
  const received = events.flatMap(({ event }) => (event === undefined ? [] : [event]));
  const ends = received.flatMap(endedAgent);
  assert.deepEqual(ends.toSorted(), [...new Set(ends)].toSorted(), `RUN_END events of ${runId}`);
  assert.ok(ends.includes(run?.agent?.instance ?? ''), `RUN_END of the root of ${runId}`);
  const results = received.flatMap(({ entry }) => (entry.case === 'result' ? [entry.value] : []));
  assert.equal(results.length, 1, `results of ${runId}`);
  const stopReason = results[0]?.stopReason ?? '';
  if (stopReason === 'success') pace.took(agent, performance.now() - started);
  return [runId, stopReason];
}

/** Halts and ends a run; retries while the halt is pending. */
async function haltRun(
  client: WritClient,
  { requestId, tenant, runId }: Readonly<Record<'requestId' | 'tenant' | 'runId', string>>,
): Promise<void> {
  const scope = { kind: { case: 'run' as const, value: { tenant, runId } } };
  const halt = { requestId, scope, reason: 'A race.', endRuns: true };
  for (;;) {
    try {
      await client.control.halt(halt);
      return;
    } catch (error) {
      if (!isWritError(error) || error.reason !== 'HALT_PENDING') throw error;
    }
  }
}

/** Ignores the rejection of a cancel or halt of a run that has ended. */
async function ignoreEnded(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!isWritError(error) || error.kind !== 'failed_precondition') throw error;
  }
}

/** Returns the instance of the agent that ended with this event; empty for other events. */
function endedAgent({ entry }: RunEvent): string[] {
  const isEnd = entry.case === 'hook' && entry.value.type === HookEventType.RUN_END;
  return isEnd ? [entry.value.agent?.instance ?? ''] : [];
}

/** Checks that the stored end of each run matches the watched one, with one RUN_END of the root and no leaked rows. */
function assertEndedOnce({ dataDir }: RacePlatform, seen: ReadonlyMap<string, string>) {
  const states = rowsOf(dataDir, 'supervisor', 'SELECT run_id, state, result FROM runs');
  assert.equal(states.length, seen.size);
  for (const { run_id: id, state, result } of states) {
    const { stopReason } = JSON.parse(String(result)) as { stopReason: string };
    assert.equal(stopReason, seen.get(String(id)), `stop reason of ${id}`);
    assert.equal(state, outcomeOf(stopReason).state, `state of ${id}`);
  }
  const entries = rowsOf(
    dataDir,
    'supervisor',
    'SELECT run_id, root_instance, entry FROM timeline JOIN runs USING (tenant, run_id)',
  );
  const ends = entries.flatMap(({ run_id: id, root_instance: root, entry }) =>
    endedAgent(fromBinary(RunEventSchema, entry as Uint8Array)).flatMap((ended) =>
      ended === root ? [String(id)] : [],
    ),
  );
  assert.deepEqual(
    ends.toSorted(),
    [...seen.keys()].toSorted(),
    'RUN_END events of roots in the timelines',
  );
  let leaked = 0;
  for (const [label, service, query] of LEAK_QUERIES) {
    const rows = rowsOf(dataDir, service, query);
    assert.deepEqual(rows, [], label);
    leaked += rows.length;
  }
  return { 'RUN_END events': ends.length, 'leaked rows': leaked };
}

function countsOf(stopReasons: Iterable<string>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const one of stopReasons) counts[one] = (counts[one] ?? 0) + 1;
  return counts;
}
