import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import { readShelf } from '@writ/example-research-team/shelf';
import { askedAgain, type RecordedAnswer, recordedAnswers } from '../e2e/platform-process.ts';
import { servePlatform } from '../e2e/served-platform.ts';
import { LEFT_OVER, rowsOf } from './left-over.ts';
import { seeded } from './random.ts';
import { driveTeams } from './team-driver.ts';

/** How the proof is made. Times are milliseconds. */
export interface TeamKillOptions {
  readonly runs: number;
  /** Runs that are under way at the same time. */
  readonly batch: number;
  readonly seed: number;
  /** Between a start that is up and its end by kill -9: anything from here to there. */
  readonly killAfterMs: readonly [number, number];
  /** After so many it is left alone; unlimited when not given. */
  readonly mostKills?: number;
}

/**
 * Runs the research team many times while the whole platform is killed at random moments and started
 * again. All runs end with the answer of an undisturbed one; no recorded model answer is asked for
 * again, no brief published twice, no slot and no reservation left.
 */
export async function teamKills(options: TeamKillOptions) {
  const { runs, batch, seed, killAfterMs, mostKills = Number.POSITIVE_INFINITY } = options;
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-team-'));
  const random = seeded(seed);
  const ended = new Map<string, Run>();
  const recorded = new Map<string, RecordedAnswer>();
  let kills = 0;
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
      const lives = from + random() * (to - from);
      const isDone = await (kills < mostKills ? Promise.race([done, delay(lives, false)]) : done);
      work.abort();
      if (!isDone) kills += 1;
      await platform.kill();
      await driven.catch(() => undefined);
      for (const answer of recordedAnswers(dataDir)) recorded.set(answer.thisAttempt, answer);
      assert.deepEqual(
        askedAgain(dataDir, [...recorded.values()]),
        [],
        'model answers asked again',
      );
    }
    for (const { runId, result } of ended.values()) {
      assert.equal(result?.answer, undisturbed, runId);
      const bad = result?.trace.filter(({ ok }) => !ok) ?? [];
      assert.deepEqual(bad, [], `steps of ${runId} that did not go well`);
    }
    const published = readShelf(dataDir).map(({ run_id: id }) => id);
    assert.equal(new Set(published).size, 1 + runs, 'runs that published');
    assert.equal(published.length, 1 + runs, 'briefs');
    for (const [what, service, query] of LEFT_OVER) {
      assert.deepEqual(rowsOf(dataDir, service, query), [], what);
    }
    return { runs, kills, model_answers: recorded.size, agents: runs * 5 };
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** The answer of a run that nothing disturbs. */
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
