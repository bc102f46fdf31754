import { strict as assert } from 'node:assert';
import { setTimeout as pause } from 'node:timers/promises';
import type { ServiceName } from '@writ/identity';
import type { Evidence } from '../../chaos/invariants/invariant.ts';
import { runFigures } from '../../chaos/load/load.ts';
import { underLoad } from '../../chaos/under-load.ts';

const PEERS: readonly ServiceName[] = [
  'supervisor',
  'spawn-budget',
  'execution-meter',
  'tool-gateway',
];
/** How long runs may take to go on by themselves. */
const GO_ON_WITHIN_MS = 60_000;

/**
 * The network between the workers and each of their peers in turn is cut for a while. Nothing is done
 * without approval, which the invariants tell, and runs go on by themselves afterwards (SYS-4, RT-2).
 */
export async function cuts({ seed, forMs }: { readonly seed: number; readonly forMs: number }) {
  const { outcome, load } = await underLoad({ seed, inFlight: 6 }, async (evidence) => {
    const figures: Record<string, string> = {};
    await anEnd(evidence);
    for (const peer of PEERS) {
      const before = evidence.load.ended.size;
      evidence.platform.cut('agent-worker', peer);
      await pause(forMs);
      const meanwhile = evidence.load.ended.size - before;
      evidence.platform.heal();
      const wentOnAfterMs = await anEnd(evidence);
      figures[peer] = `${meanwhile} runs ended meanwhile, the next ${wentOnAfterMs} ms after`;
    }
    return figures;
  });
  return { ...outcome, ...runFigures(load) };
}

/** How many milliseconds pass until the next run ends. */
async function anEnd({ load }: Evidence): Promise<number> {
  const from = performance.now();
  const before = load.ended.size;
  while (load.ended.size === before) {
    const ms = performance.now() - from;
    assert.ok(ms < GO_ON_WITHIN_MS, `no run ended within ${GO_ON_WITHIN_MS} ms after the cut`);
    await pause(20);
  }
  return Math.round(performance.now() - from);
}
