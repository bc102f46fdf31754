import { strict as assert } from 'node:assert';
import { setTimeout as delay } from 'node:timers/promises';
import { quantileOf } from '../../bench/measure.ts';
import { SuspendedAgentsHarness } from './suspended-agents-harness.ts';

/** Maximum memory growth of the worker, bytes. */
const MAX_GROWTH = 50 * 2 ** 20;
const FEW = 10;
/** Agents that are woken before the measurement, so that the code is compiled in both processes. */
const WARM_UP = 100;

/**
 * Compares a worker with few suspended agents to one with very many: memory grows by less than {@link MAX_GROWTH}, and
 * the wake-up latency of a signal is measured for both (RT-2).
 */
export async function suspendedAgents({
  many,
  wakes,
}: {
  readonly many: number;
  readonly wakes: number;
}) {
  const harness = await SuspendedAgentsHarness.start();
  try {
    await harness.startWorker();
    for (let n = 0; n < FEW; n += 1) await harness.suspend(`run-${n}`);
    const few: number[] = [];
    for (let n = 0; n < WARM_UP + wakes; n += 1) {
      few.push(await harness.wake(`run-${n}`));
      await harness.suspend(`run-${n + FEW}`);
    }
    const idle = await harness.rss();
    await harness.stopWorker();
    const next = WARM_UP + wakes + FEW;

    // The woken agents are spread over all agents.
    const woken = WARM_UP + wakes;
    const awaken = Array.from({ length: woken }, (_, n) => 1 + Math.floor((n * many) / woken));
    await harness.copy(`run-${next - 1}`, many, awaken);
    const reported = () => harness.slots.batches.reduce((sum, agents) => sum + agents, 0);
    const before = reported();
    await harness.startWorker();
    let peak = 0;
    // After a restart the worker reports its suspended agents to spawn-budget.
    while (reported() - before < many) {
      peak = Math.max(peak, await harness.rss());
      await delay(500);
    }
    const crowded: number[] = [];
    for (const [index, n] of awaken.entries()) {
      crowded.push(await harness.wake(`copy-${n}`));
      await harness.suspend(`run-${next + index}`);
    }
    const full = await harness.rss();
    peak = Math.max(peak, full);
    const growth = peak - idle;
    const mb = (bytes: number): string => (bytes / 2 ** 20).toFixed(0);
    assert.ok(growth < MAX_GROWTH, `the worker grew by ${mb(growth)} MB`);
    return {
      suspended: `${FEW}, then ${many + FEW}`,
      'resident memory with few, with many, and peak, MB': [idle, full, peak].map(mb).join(', '),
      'p50 wake-up latency with few and with many, ms': both(
        few.slice(WARM_UP),
        crowded.slice(WARM_UP),
        0.5,
      ),
      'p99 wake-up latency with few and with many, ms': both(
        few.slice(WARM_UP),
        crowded.slice(WARM_UP),
        0.99,
      ),
    };
  } finally {
    await harness.close();
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
