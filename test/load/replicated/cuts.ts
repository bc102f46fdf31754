import { strict as assert } from 'node:assert';
import { setTimeout as pause } from 'node:timers/promises';
import type { CoreService } from '@writ/identity';
import type { Evidence } from '../../chaos/invariants/invariant.ts';
import { runFigures } from '../../chaos/load/load.ts';
import { assertNoViolations, underLoad } from '../../chaos/under-load.ts';

const PEERS: readonly CoreService[] = [
  'supervisor',
  'spawn-budget',
  'execution-meter',
  'tool-gateway',
];
/** Liveness limit for the next run to end. */
const RESUME_WITHIN_MS = 60_000;

/**
 * Partitions the workers from each of their peers in turn. The invariants check that nothing runs without
 * approval, and runs resume after each partition (SYS-4, RT-2).
 */
export async function cuts({ seed, forMs }: { readonly seed: number; readonly forMs: number }) {
  const report = await underLoad({ seed, inFlight: 6 }, async (evidence) => {
    const figures: Record<string, string> = {};
    await untilNextEnd(evidence);
    for (const peer of PEERS) {
      const before = evidence.load.ended.size;
      evidence.platform.cut('agent-worker', peer);
      await pause(forMs);
      const endedDuring = evidence.load.ended.size - before;
      evidence.platform.heal();
      const resumedAfterMs = await untilNextEnd(evidence);
      figures[peer] =
        `${endedDuring} runs ended during the partition, the next one ${resumedAfterMs} ms after it`;
    }
    return figures;
  });
  assertNoViolations(report);
  return { ...report.outcome, ...runFigures(report.load) };
}

/** Resolves when the next run ends; returns the time in milliseconds. */
async function untilNextEnd({ load }: Evidence): Promise<number> {
  const from = performance.now();
  const before = load.ended.size;
  while (load.ended.size === before) {
    const ms = performance.now() - from;
    assert.ok(
      ms < RESUME_WITHIN_MS,
      `no run ended within ${RESUME_WITHIN_MS} ms after the partition`,
    );
    await pause(20);
  }
  return Math.round(performance.now() - from);
}
