import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { fromBinary } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { WritClient } from '@writ/client';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { type RunEvent, RunEventSchema } from '@writ/contracts/writ/run/v1/run_pb';
import { isWritError, outcomeOf } from '@writ/kernel';
import { LEFT_OVER, rowsOf } from './left-over.ts';
import { type RacePlatform, startRacePlatform } from './race-platform.ts';
import { seeded } from './random.ts';

/** How often a run has each of them beside its own finish; those that have several race with all. */
const CANCELLED = 0.5;
const TIMED_OUT = 0.4;
const HALTED = 0.3;
/** Runs in which one agent takes another one's slot. */
const TEAMS = 0.25;
const LANES = 24;

/**
 * Runs in which the finish races with a cancellation, a deadline, a halt that ends the run, and
 * preemption, all about when the run would be over by itself. Each has one terminal state, one RUN_END
 * and one result, whoever wins, and nothing is left over (RT-4, AG-7, SUP-8).
 */
export async function races({ runs, seed }: { readonly runs: number; readonly seed: number }) {
  const random = seeded(seed);
  const platform = await startRacePlatform();
  try {
    const seen = new Map<string, string>();
    const pace = new Pace();
    let next = 0;
    const lane = async () => {
      while (next < runs) {
        next += 1;
        const [runId, stopReason] = await race(platform.client, { number: next, random, pace });
        seen.set(runId, stopReason);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    await platform.stop();
    assertEndedOnce(platform, seen);
    const pauses = rowsOf(platform.dataDir, 'spawn-budget', 'SELECT total_pauses FROM pools');
    const preempted = pauses.filter((row) => Number(row.total_pauses) > 0).length;
    return { runs: seen.size, ...countsOf(seen.values()), 'with a preemption': preempted };
  } finally {
    await platform.stop();
    platform.remove();
  }
}

/** How long runs of a kind take now that end by themselves, in ms. */
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

/** Runs one with what it drew; answers how it ended for whoever watched. */
async function race(
  client: WritClient,
  { number, random, pace }: { number: number; random: () => number; pace: Pace },
): Promise<[runId: string, stopReason: string]> {
  const agent = random() < TEAMS ? 'lead' : 'solo';
  /** Mostly near the finish; whole ms. */
  const moment = () => Math.ceil(pace.of(agent) * (0.2 + random() * 1.1));
  const draw = (share: number) => (random() < share ? moment() : undefined);
  const [cancelAt, deadlineAt, haltAt] = [draw(CANCELLED), draw(TIMED_OUT), draw(HALTED)];
  const started = performance.now();
  const { run } = await client.runs.startRun({
    requestId: `race-${number}`,
    agent,
    goal: 'Race.',
    ...(deadlineAt !== undefined && { runBudget: { deadline: durationFromMs(deadlineAt) } }),
  });
  const { runId = '', tenant = '' } = run ?? {};
  const at = async (ms: number | undefined, act: () => Promise<unknown>): Promise<void> => {
    if (ms === undefined) return;
    await pause(Math.max(0, started + ms - performance.now()));
    await unlessOver(act());
  };
  const [events] = await Promise.all([
    Array.fromAsync(client.runs.watchRun({ runId })),
    at(cancelAt, () => client.runs.cancelRun({ requestId: `cancel-${number}`, runId })),
    at(haltAt, () => haltRun(client, { requestId: `halt-${number}`, tenant, runId })),
  ]);
  const told = events.flatMap(({ event }) => (event === undefined ? [] : [event]));
  assert.equal(told.filter(isRunEnd).length, 1, `RUN_END of ${runId} for who watches`);
  const results = told.flatMap(({ entry }) => (entry.case === 'result' ? [entry.value] : []));
  assert.equal(results.length, 1, `results of ${runId}`);
  const stopReason = results[0]?.stopReason ?? '';
  if (stopReason === 'success') pace.took(agent, performance.now() - started);
  return [runId, stopReason];
}

/** Ends a run by a halt; one that is in force and not carried out yet is asked for again. */
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

/** A run that is over can be neither cancelled nor halted. */
async function unlessOver(order: Promise<unknown>): Promise<void> {
  try {
    await order;
  } catch (error) {
    if (!isWritError(error) || error.kind !== 'failed_precondition') throw error;
  }
}

function isRunEnd({ entry }: RunEvent): boolean {
  return entry.case === 'hook' && entry.value.type === HookEventType.RUN_END;
}

/** Checks that each run stands as it was seen to end, with one RUN_END in its timeline, and left nothing. */
function assertEndedOnce({ dataDir }: RacePlatform, seen: ReadonlyMap<string, string>): void {
  const states = rowsOf(dataDir, 'supervisor', 'SELECT run_id, state, result FROM runs');
  assert.equal(states.length, seen.size);
  for (const { run_id: id, state, result } of states) {
    const { stopReason } = JSON.parse(String(result)) as { stopReason: string };
    assert.equal(stopReason, seen.get(String(id)), `stop reason of ${id}`);
    assert.equal(state, outcomeOf(stopReason).state, `state of ${id}`);
  }
  const ends = rowsOf(dataDir, 'supervisor', 'SELECT run_id, entry FROM timeline').flatMap(
    ({ run_id: id, entry }) =>
      isRunEnd(fromBinary(RunEventSchema, entry as Uint8Array)) ? [String(id)] : [],
  );
  assert.deepEqual(ends.toSorted(), [...seen.keys()].toSorted(), 'RUN_ENDs in timelines');
  for (const [what, service, query] of LEFT_OVER) {
    assert.deepEqual(rowsOf(dataDir, service, query), [], what);
  }
}

function countsOf(stopReasons: Iterable<string>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const one of stopReasons) counts[one] = (counts[one] ?? 0) + 1;
  return counts;
}
