import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { median } from '../../bench/measure.ts';
import { StepsHarness } from './steps-harness.ts';

/** Number of steps of the short run with which the long run is compared. */
const SHORT_STEPS = 150;
/** Number of first steps of the short run that are not measured. */
const SKIPPED_STEPS = 50;
/** Maximum duration of a late step of the long run, relative to a step of the short run. */
const MAX_RATIO = 1.5;
/**
 * Maximum number of rows read to resume a run of any length: the first segment of the journal, the current segment of
 * up to 32 steps, and the stored turns in the context window.
 */
const MAX_ROWS_READ = 400;
/** Turns of two checkpoints of 32 steps: a row of stored turns can begin this far before the first turn to read. */
const TURNS_PER_ROW = 128;
/** The rows of the agent, its snapshot and its inbox. */
const OTHER_ROWS = 3;
/** Context window of the model in tokens. */
const WINDOW = 400;

/**
 * Starts a run of `steps` steps and, near its end, a concurrent short run, so that machine load affects both alike.
 * Asserts that a late step takes at most {@link MAX_RATIO} times as long as a step around step 100 of the short
 * run. Then kills the platform, and asserts that the run resumes from at most {@link MAX_ROWS_READ} rows (RT-1).
 */
export async function longRun({ steps }: { readonly steps: number }) {
  const harness = await StepsHarness.start({ counts: [steps, SHORT_STEPS], contextWindow: WINDOW });
  try {
    const long: number[] = [];
    const short: number[] = [];
    const lastAt = { long: 0, short: 0 };
    const reachedLateSteps = Promise.withResolvers<void>();
    const reachedEnd = Promise.withResolvers<void>();
    const lateFrom = steps - 2 * SHORT_STEPS;
    let isShortActive = false;
    harness.model.onRequest = (limit, next) => {
      const now = performance.now();
      const which = limit === SHORT_STEPS ? 'short' : 'long';
      const took = now - lastAt[which];
      lastAt[which] = now;
      if (which === 'short' && next > SKIPPED_STEPS + 1) short.push(took);
      if (which === 'long' && isShortActive) long.push(took);
      if (which === 'long' && next === lateFrom) reachedLateSteps.resolve();
      if (which === 'long' && next === steps - 20) reachedEnd.resolve();
    };
    const runId = await harness.startRun(steps, 'the long run');
    await reachedLateSteps.promise;
    isShortActive = true;
    await harness.count(SHORT_STEPS, 'a short run');
    isShortActive = false;
    const ratio = median(long) / median(short);
    await reachedEnd.promise;
    await harness.kill();
    const rows = rowsToResume(harness.dataDir, runId);
    const resumed = Promise.withResolvers<void>();
    harness.model.onRequest = () => resumed.resolve();
    const startedAt = performance.now();
    await harness.startPlatform();
    const upAt = performance.now();
    await resumed.promise;
    const resumedAt = performance.now();
    await harness.untilEnded(runId, steps);
    assert.ok(
      ratio <= MAX_RATIO,
      `a late step takes ${ratio.toFixed(2)} times as long as one of a short run`,
    );
    assert.ok(rows.read <= MAX_ROWS_READ, `${rows.read} rows are read to resume`);
    return {
      steps,
      'late step / step of the short run': ratio.toFixed(2),
      'p50 of a late step and of a step of the short run, ms': `${median(long).toFixed(1)}, ${median(short).toFixed(1)}`,
      'rows read to resume': rows.read,
      'rows in the journal': rows.journal,
      'ms to start the platform': (upAt - startedAt).toFixed(0),
      'ms from the started platform to the next model call': (resumedAt - upAt).toFixed(0),
    };
  } finally {
    await harness.close();
  }
}

/** Returns an upper estimate of the rows that the worker reads to resume a run, and the number of its journal rows. */
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
      `snapshot_items JOIN snapshots USING (tenant, run_id, instance) WHERE run_id = ? AND snapshot_items.position >= snapshots.items_from - ${TURNS_PER_ROW}`,
    );
    return { read: replayed + items + OTHER_ROWS, journal };
  } finally {
    database.close();
  }
}
