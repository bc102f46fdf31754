import assert from 'node:assert/strict';
import { setTimeout as after } from 'node:timers/promises';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { startCaller } from './caller.ts';
import type { FloodOrder } from './flood-caller.ts';
import { GatewayStage, type StagedOrder } from './gateway-kill-stage.ts';

/** How long the slow tool takes. */
const SLOW_MS = 100;
/** How many calls of the other source are in flight at a time. */
const AT_A_TIME = 2;

const DEFAULT_PLACES = { max_in_flight: 32, max_queued: 256 };

/** How a flood is made. */
interface FloodOptions {
  /** Calls of the slow source, all asked for at once by one worker. */
  readonly calls: number;
  /** For how long the other source is measured before. */
  readonly idleMs: number;
  /** Places of the slow source; the gateway's defaults unless given. */
  readonly places?: { readonly max_in_flight: number; readonly max_queued: number };
}

/**
 * Floods one slow source of a gateway from a worker of its own and measures the calls of another
 * source, before and meanwhile (TG-6). Every call of the flood is executed or refused as overloaded;
 * the other source goes on.
 */
export async function flood({ calls, idleMs, places = DEFAULT_PLACES }: FloodOptions) {
  const entry = { side_effect: 'read_only' };
  const stage = await GatewayStage.start({
    tools: {
      crawl: { entry: { ...entry, source: 'slow' }, run: () => after(SLOW_MS) },
      look: { entry: { ...entry, source: 'quick' }, run: async () => undefined },
    },
    sources: { slow: places, quick: {} },
  });
  const caller = await startCaller('flood-caller.ts');
  try {
    let made = 0;
    const look = async (): Promise<number> => {
      made += 1;
      const order = await stage.order({ tool: 'look', callId: `look-${made}` });
      const started = performance.now();
      const { status } = await stage.call(order);
      assert.equal(status, CallStatus.OK, 'A call of the other source went wrong.');
      return performance.now() - started;
    };
    const measure = async (isOver: () => boolean): Promise<number[]> => {
      const times: number[] = [];
      const one = async (): Promise<void> => {
        while (!isOver()) times.push(await look());
      };
      await Promise.all(Array.from({ length: AT_A_TIME }, one));
      return times.toSorted((a, b) => a - b);
    };
    const orders: StagedOrder[] = [];
    for (let call = 0; call < calls; call += 1) {
      orders.push(
        await stage.order({ tool: 'crawl', callId: `crawl-${call}`, runId: `run-${call % 50}` }),
      );
    }
    await measure(within(idleMs / 2));
    const idle = await measure(within(idleMs));
    const started = performance.now();
    let isOver = false;
    const answer = caller.ask({ ...(await stage.door()), orders } satisfies FloodOrder);
    const [endings, flooded] = await Promise.all([
      answer.finally(() => {
        isOver = true;
      }),
      measure(() => isOver),
    ]);
    const seconds = (performance.now() - started) / 1_000;
    const { 'status 1': executed = 0, TOOL_QUEUE_FULL: overloaded = 0 } = (endings ?? {}) as Record<
      string,
      number
    >;
    assert.equal(executed + overloaded, calls, `It ended otherwise: ${JSON.stringify(endings)}.`);
    assert.ok(executed > 0 && flooded.length > 0, 'Nothing went on.');
    const p99 = [idle, flooded].map((times) => times[Math.floor(times.length * 0.99)] ?? 0);
    const [p99Idle = 0, p99Flooded = 0] = p99;
    return {
      'calls of the slow source': calls,
      executed,
      overloaded,
      'flood, s': seconds.toFixed(1),
      'calls of the other source, idle and meanwhile': `${idle.length}, ${flooded.length}`,
      'their p50 idle, ms': middle(idle),
      'their p50 meanwhile, ms': middle(flooded),
      'their p99 idle, ms': p99Idle.toFixed(1),
      'their p99 meanwhile, ms': p99Flooded.toFixed(1),
      'p99 meanwhile / idle': (p99Flooded / p99Idle).toFixed(2),
    };
  } finally {
    await caller.kill();
    await stage.close();
  }
}

function within(ms: number): () => boolean {
  const end = performance.now() + ms;
  return () => performance.now() > end;
}

function middle(sorted: readonly number[]): string {
  return (sorted[Math.floor(sorted.length / 2)] ?? 0).toFixed(1);
}
