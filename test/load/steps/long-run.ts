import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { median } from '../../bench/measure.ts';
import { StepsStage } from './steps-stage.ts';

/** Steps of the young runs that the long one is compared with, and where of them: around step 100. */
const YOUNG = 150;
const YOUNG_FROM = 50;
/** The most that a step of the long run may cost, in those of a young one. */
const MOST = 1.5;
/** The most rows that resuming may read, however long the run is: two segments of 32 steps, and what a window holds. */
const MOST_ROWS = 400;
/** Tokens of the conversation that the model sees. */
const WINDOW = 400;

/**
 * One run of many steps. At its end a step costs about what one around step 100 of a young run costs
 * that goes on beside it, so that whatever else the machine does weighs on both; then the platform is
 * killed, and the run resumed from a bounded number of rows (RT-1).
 */
export async function longRun({ steps }: { readonly steps: number }) {
  const stage = await StepsStage.start({ counts: [steps, YOUNG], contextWindow: WINDOW });
  try {
    const old: number[] = [];
    const young: number[] = [];
    const lastAt = { old: 0, young: 0 };
    const isLate = Promise.withResolvers<void>();
    const isAtEnd = Promise.withResolvers<void>();
    const lateFrom = steps - 2 * YOUNG;
    let isBeside = false;
    stage.model.asked = (limit, next) => {
      const now = performance.now();
      const who = limit === YOUNG ? 'young' : 'old';
      const took = now - lastAt[who];
      lastAt[who] = now;
      if (who === 'young' && next > YOUNG_FROM) young.push(took);
      if (who === 'old' && isBeside) old.push(took);
      if (who === 'old' && next === lateFrom) isLate.resolve();
      if (who === 'old' && next === steps - 20) isAtEnd.resolve();
    };
    const runId = await stage.startRun(steps, 'the long run');
    await isLate.promise;
    isBeside = true;
    await stage.count(YOUNG, 'a young run');
    isBeside = false;
    const ratio = median(old) / median(young);
    await isAtEnd.promise;
    await stage.kill();
    const rows = rowsToResume(stage.dataDir, runId);
    const resumed = Promise.withResolvers<void>();
    stage.model.asked = () => resumed.resolve();
    const killedAt = performance.now();
    await stage.startPlatform();
    const upAt = performance.now();
    await resumed.promise;
    const resumedAt = performance.now();
    await stage.untilEnded(runId, steps);
    assert.ok(ratio <= MOST, `a late step costs ${ratio.toFixed(2)} times an early one`);
    assert.ok(rows.read <= MOST_ROWS, `${rows.read} rows are read to resume`);
    return {
      steps,
      'late step, in steps around the 100th': ratio.toFixed(2),
      'p50 of a late and an early step, ms': `${median(old).toFixed(1)}, ${median(young).toFixed(1)}`,
      'rows that resuming reads': rows.read,
      'rows of the journal': rows.journal,
      'ms from the start of the platform to its being up': (upAt - killedAt).toFixed(0),
      'ms from there to the next model call': (resumedAt - upAt).toFixed(0),
    };
  } finally {
    await stage.close();
  }
}

/** What the worker reads of a run to go on with it, and what it has of it. */
function rowsToResume(dataDir: string, runId: string): { read: number; journal: number } {
  const database = new DatabaseSync(join(dataDir, 'agent-worker.db'), { readOnly: true });
  const count = (from: string): number =>
    Number(database.prepare(`SELECT COUNT(*) AS n FROM ${from}`).get(runId)?.n);
  try {
    const journal = count('journal WHERE run_id = ?');
    const replayed = count(
      'journal JOIN snapshots USING (tenant, run_id, instance) WHERE run_id = ? AND journal.segment IN (0, snapshots.segment)',
    );
    const items = count(
      'snapshot_items JOIN snapshots USING (tenant, run_id, instance) WHERE run_id = ? AND snapshot_items.position >= snapshots.items_from - 128',
    );
    return { read: replayed + items + 3, journal };
  } finally {
    database.close();
  }
}
