import { strict as assert } from 'node:assert';
import { setTimeout as delay } from 'node:timers/promises';
import { quantileOf } from '../../bench/measure.ts';
import { SleepersStage } from './sleepers-stage.ts';

/** The most that the worker's memory may grow by, bytes. */
const MOST_GROWTH = 50 * 2 ** 20;
const FEW = 10;
/** Agents that are woken before any is timed, in each of the two processes: their code is compiled by then. */
const WARM_UP = 100;

/**
 * A worker with few agents that wait for a person, then with very many: its resident memory hardly
 * grows, and a signal wakes one as fast (RT-2).
 */
export async function sleepers({ many, wakes }: { readonly many: number; readonly wakes: number }) {
  const stage = await SleepersStage.start();
  try {
    await stage.startWorker();
    for (let n = 0; n < FEW; n += 1) await stage.putToSleep(`run-${n}`);
    const few: number[] = [];
    for (let n = 0; n < WARM_UP + wakes; n += 1) {
      few.push(await stage.wake(`run-${n}`));
      await stage.putToSleep(`run-${n + FEW}`);
    }
    const idle = await stage.rss();
    await stage.stopWorker();
    const next = WARM_UP + wakes + FEW;

    // Spread over all of them.
    const woken = WARM_UP + wakes;
    const awaken = Array.from({ length: woken }, (_, n) => 1 + Math.floor((n * many) / woken));
    await stage.copy(`run-${next - 1}`, many, awaken);
    const told = () => stage.slots.batches.reduce((sum, agents) => sum + agents, 0);
    const before = told();
    await stage.startWorker();
    let peak = 0;
    // The worker tells spawn-budget again which agents of its former process sleep.
    while (told() - before < many) {
      peak = Math.max(peak, await stage.rss());
      await delay(500);
    }
    const crowded: number[] = [];
    for (const [index, n] of awaken.entries()) {
      crowded.push(await stage.wake(`copy-${n}`));
      await stage.putToSleep(`run-${next + index}`);
    }
    const full = await stage.rss();
    peak = Math.max(peak, full);
    const growth = peak - idle;
    const mb = (bytes: number): string => (bytes / 2 ** 20).toFixed(0);
    assert.ok(growth < MOST_GROWTH, `the worker grew by ${mb(growth)} MB`);
    return {
      suspended: `${FEW}, then ${many + FEW}`,
      'resident memory with few, with many, and at most, MB': [idle, full, peak].map(mb).join(', '),
      'p50 of a wake with few and with many, ms': both(
        few.slice(WARM_UP),
        crowded.slice(WARM_UP),
        0.5,
      ),
      'p99 of a wake with few and with many, ms': both(
        few.slice(WARM_UP),
        crowded.slice(WARM_UP),
        0.99,
      ),
    };
  } finally {
    await stage.close();
  }
}

function both(few: readonly number[], many: readonly number[], share: number): string {
  const of = (durations: readonly number[]): string =>
    quantileOf(
      durations.toSorted((a, b) => a - b),
      share,
    ).toFixed(1);
  return `${of(few)}, ${of(many)}`;
}
