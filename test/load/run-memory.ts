import { setTimeout as pause } from 'node:timers/promises';
import { untilAdmitted } from './admitted.ts';
import { StepsHarness } from './steps/steps-harness.ts';

const STEPS = 2;
const IN_FLIGHT = 16;
/** Longer than the intervals of the background work that follows the end of a run. */
const SETTLE_MS = 5_000;
const MB = 1_048_576;

/** Options of {@link runMemory}. */
export interface RunMemoryOptions {
  /** Number of runs before the first measurement; these runs fill caches and make one-time allocations. */
  readonly before: number;
  /** Runs in total. */
  readonly runs: number;
}

/** Measures the live heap of the embedded platform after `before` and after `runs` two-step runs (CO-2). */
export async function runMemory({ before, runs }: RunMemoryOptions) {
  const harness = await StepsHarness.start({ counts: [STEPS], flags: ['--expose-gc'] });
  try {
    await countAll(harness, before);
    const first = await liveHeap(harness);
    await countAll(harness, runs - before);
    const last = await liveHeap(harness);
    return { firstMb: first / MB, lastMb: last / MB, grownMb: (last - first) / MB };
  } finally {
    await harness.close();
  }
}

async function countAll(harness: StepsHarness, runs: number): Promise<void> {
  let left = runs;
  const next = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const runId = await untilAdmitted(() => harness.startRun(STEPS, 'Count.'));
      await harness.untilEnded(runId, STEPS);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, next));
}

/**
 * Returns the live heap after it has stopped shrinking, because on a busy machine the work after the end of runs takes
 * longer.
 */
async function liveHeap(harness: StepsHarness): Promise<number> {
  for (let before = Number.POSITIVE_INFINITY; ; ) {
    await pause(SETTLE_MS);
    const { heap } = await harness.counters('heap');
    if (heap > before - MB / 4) return Math.min(heap, before);
    before = heap;
  }
}
