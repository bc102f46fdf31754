import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { median } from '../../bench/measure.ts';
import { StepsHarness } from './steps-harness.ts';

/**
 * Number of steps of the short run with which the long run is compared, and number of its first steps that are not
 * measured.
 */
const YOUNG = 150;
const YOUNG_FROM = 50;
/** Maximum cost of a step of the long run relative to one of the short run. */
const MOST = 1.5;
/**
 * Maximum number of rows read to resume a run of any length: two segments of 32 steps and the context window.
 */
const MOST_ROWS = 400;
/** Context window of the model in tokens. */
const WINDOW = 400;

/**
 * Starts a run of `steps` steps and, near its end, a concurrent short run, so that machine load affects both alike.
 * Asserts that a late step takes at most {@link MOST} times as long as a step around step 100 of the short run. Then
 * kills the platform, and asserts that the run resumes from at most {@link MOST_ROWS} rows (RT-1).
 */
export async function longRun({ steps }: { readonly steps: number }) {
  const harness = await StepsHarness.start({ counts: [steps, YOUNG], contextWindow: WINDOW });
  try {
    const old: number[] = [];
    const young: number[] = [];
    const lastAt = { old: 0, young: 0 };
    const isLate = Promise.withResolvers<void>();
    const isAtEnd = Promise.withResolvers<void>();
    const lateFrom = steps - 2 * YOUNG;
    let isBeside = false;
    harness.model.onRequest = (limit, next) => {
      const now = performance.now();
      const who = limit === YOUNG ? 'young' : 'old';
      const took = now - lastAt[who];
      lastAt[who] = now;
      if (who === 'young' && next > YOUNG_FROM) young.push(took);
      if (who === 'old' && isBeside) old.push(took);
      if (who === 'old' && next === lateFrom) isLate.resolve();
      if (who === 'old' && next === steps - 20) isAtEnd.resolve();
    };
    const runId = await harness.startRun(steps, 'the long run');
    await isLate.promise;
    isBeside = true;
    await harness.count(YOUNG, 'a young run');
    isBeside = false;
    const ratio = median(old) / median(young);
    await isAtEnd.promise;
    await harness.kill();
    const rows = rowsToResume(harness.dataDir, runId);
    const resumed = Promise.withResolvers<void>();
    harness.model.onRequest = () => resumed.resolve();
    const killedAt = performance.now();
    await harness.startPlatform();
    const upAt = performance.now();
    await resumed.promise;
    const resumedAt = performance.now();
    await harness.untilEnded(runId, steps);
    assert.ok(ratio <= MOST, `a late step costs ${ratio.toFixed(2)} times an early step`);
    assert.ok(rows.read <= MOST_ROWS, `${rows.read} rows are read to resume`);
    return {
      steps,
      'late step / step around the 100th': ratio.toFixed(2),
      'p50 of a late and of an early step, ms': `${median(old).toFixed(1)}, ${median(young).toFixed(1)}`,
      'rows read to resume': rows.read,
      'rows in the journal': rows.journal,
      'ms to start the platform': (upAt - killedAt).toFixed(0),
      'ms from the start to the next model call': (resumedAt - upAt).toFixed(0),
    };
  } finally {
    await harness.close();
  }
}

/** The rows that the worker reads to resume a run, and the rows of its journal. */
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
