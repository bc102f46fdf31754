import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import { readShelf } from '@writ/example-research-team/shelf';
import { seeded } from '@writ/testing/random';
import {
  type RecordedAnswer,
  recordedAnswers,
  repeatedModelCalls,
} from '../e2e/platform-process.ts';
import { servePlatform } from '../e2e/served-platform.ts';
import { LEAK_QUERIES, rowsOf } from './leaks.ts';
import { driveTeams } from './team-driver.ts';

/** Options of the kill test. Times are milliseconds. */
export interface TeamKillOptions {
  readonly runs: number;
  /** Runs in flight at the same time. */
  readonly batch: number;
  readonly seed: number;
  /** Shortest and longest time between a start and the kill. */
  readonly killAfterMs: readonly [number, number];
  /** Maximum number of kills; default unlimited. */
  readonly maxKills?: number;
}

/**
 * Runs the research team many times while the whole platform is killed at random moments and restarted. All
 * runs end with the answer of an undisturbed run; no recorded model answer is requested again, no brief is
 * published twice, and no resource leaks.
 */
export async function teamKills(options: TeamKillOptions) {
  const { runs, batch, seed, killAfterMs, maxKills = Number.POSITIVE_INFINITY } = options;
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-team-'));
  const random = seeded(seed);
  const ended = new Map<string, Run>();
  const recorded = new Map<string, RecordedAnswer>();
  let kills = 0;
  let requestedAgain = 0;
  try {
    const undisturbed = await answerOf(dataDir);
    while (ended.size < runs) {
      const platform = await servePlatform(dataDir, 'research-team');
      const work = new AbortController();
      const driven = driveTeams(
        platform.client,
        dataDir,
        { runs, batch, ended, name: 'team' },
        work.signal,
      );
      const done = driven.then(() => true);
      const [from, to] = killAfterMs;
      const upMs = from + random() * (to - from);
      try {
        const isDone = await (kills < maxKills ? Promise.race([done, delay(upMs, false)]) : done);
        if (!isDone) kills += 1;
      } finally {
        work.abort();
        await platform.kill();
        await driven.catch(() => undefined);
      }
      for (const answer of recordedAnswers(dataDir)) recorded.set(answer.thisAttempt, answer);
      const repeated = repeatedModelCalls(dataDir, [...recorded.values()]);
      assert.deepEqual(repeated, [], 'model answers requested again');
      requestedAgain += repeated.length;
    }
    for (const { runId, result } of ended.values()) {
      assert.equal(result?.answer, undisturbed, runId);
      const bad = result?.trace.filter(({ ok }) => !ok) ?? [];
      assert.deepEqual(bad, [], `failed steps of ${runId}`);
    }
    const published = readShelf(dataDir).map(({ run_id: id }) => id);
    assert.equal(new Set(published).size, 1 + runs, 'runs that published');
    assert.equal(published.length, 1 + runs, 'briefs');
    let leaked = 0;
    for (const [label, service, query] of LEAK_QUERIES) {
      const rows = rowsOf(dataDir, service, query);
      assert.deepEqual(rows, [], label);
      leaked += rows.length;
    }
    const answers = [...ended.values()].map(({ result }) => result?.answer);
    return {
      kills,
      'runs with the answer of an undisturbed run': answers.filter((one) => one === undisturbed)
        .length,
      'briefs published': published.length,
      'recorded model answers': recorded.size,
      'model answers requested again': requestedAgain,
      'leaked rows': leaked,
    };
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Returns the answer of an undisturbed run. */
async function answerOf(dataDir: string): Promise<string> {
  const platform = await servePlatform(dataDir, 'research-team');
  try {
    const ended = new Map<string, Run>();
    const job = { runs: 1, batch: 1, ended, name: 'undisturbed' };
    await driveTeams(platform.client, dataDir, job, new AbortController().signal);
    const [run] = ended.values();
    assert.equal(run?.result?.stopReason, 'success');
    return run?.result?.answer ?? '';
  } finally {
    await platform.kill();
  }
}
