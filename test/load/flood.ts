import { setTimeout as after } from 'node:timers/promises';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { startCaller } from './caller.ts';
import type { FloodRequest } from './flood-caller.ts';
import { GatewayHarness, type SignedCall } from './gateway-harness.ts';

/** Duration of a call of the slow tool. */
const SLOW_MS = 100;
/** Concurrent calls of the other source. */
const CONCURRENCY = 2;

const DEFAULT_LIMITS = { max_in_flight: 32, max_queued: 256 };

/** Options of a flood. */
interface FloodOptions {
  /** Calls of the slow source, all made concurrently by one worker. */
  readonly calls: number;
  /** Duration of the idle measurement before the flood. */
  readonly idleMs: number;
  /** Concurrency limits of the slow source; default: those of the gateway. */
  readonly limits?: { readonly max_in_flight: number; readonly max_queued: number };
}

/**
 * Floods one slow source of a gateway and measures the calls of another source before and during the
 * flood (TG-6). Every call of the flood must be executed or rejected as overloaded.
 */
export async function flood({ calls, idleMs, limits = DEFAULT_LIMITS }: FloodOptions) {
  const entry = { side_effect: 'read_only' };
  const harness = await GatewayHarness.start({
    tools: {
      crawl: { entry: { ...entry, source: 'slow' }, run: () => after(SLOW_MS) },
      lookup: { entry: { ...entry, source: 'quick' }, run: async () => undefined },
    },
    sources: { slow: limits, quick: {} },
  });
  const caller = await startCaller('flood-caller.ts');
  try {
    let made = 0;
    let failed = 0;
    const lookup = async (): Promise<number> => {
      made += 1;
      const request = await harness.sign({ tool: 'lookup', callId: `lookup-${made}` });
      const started = performance.now();
      const { status } = await harness.call(request);
      if (status !== CallStatus.OK) failed += 1;
      return performance.now() - started;
    };
    const measure = async (isOver: () => boolean): Promise<number[]> => {
      const times: number[] = [];
      const one = async (): Promise<void> => {
        while (!isOver()) times.push(await lookup());
      };
      await Promise.all(Array.from({ length: CONCURRENCY }, one));
      return times.toSorted((a, b) => a - b);
    };
    const requests: SignedCall[] = [];
    for (let call = 0; call < calls; call += 1) {
      requests.push(
        await harness.sign({ tool: 'crawl', callId: `crawl-${call}`, runId: `run-${call % 50}` }),
      );
    }
    await measure(within(idleMs / 2));
    const idle = await measure(within(idleMs));
    const started = performance.now();
    let isOver = false;
    const answer = caller.send({
      ...(await harness.endpoint()),
      calls: requests,
    } satisfies FloodRequest);
    const [outcomes, flooded] = await Promise.all([
      answer.finally(() => {
        isOver = true;
      }),
      measure(() => isOver),
    ]);
    const seconds = (performance.now() - started) / 1_000;
    const counts = (outcomes ?? {}) as Record<string, number>;
    const { 'status 1': executed = 0, TOOL_QUEUE_FULL: overloaded = 0, ...others } = counts;
    const p99 = [idle, flooded].map((times) => times[Math.floor(times.length * 0.99)] ?? 0);
    const [p99Idle = 0, p99Flooded = 0] = p99;
    return {
      'calls of the slow source': calls,
      executed,
      overloaded,
      'other outcomes': JSON.stringify(others),
      'flood, seconds': seconds.toFixed(1),
      'calls of the other source when idle': idle.length,
      'calls of the other source during the flood': flooded.length,
      'failed calls of the other source': failed,
      'p50 when idle, ms': medianOf(idle),
      'p50 during the flood, ms': medianOf(flooded),
      'p99 when idle, ms': p99Idle.toFixed(1),
      'p99 during the flood, ms': p99Flooded.toFixed(1),
      'p99 during the flood / idle': (p99Flooded / p99Idle).toFixed(2),
    };
  } finally {
    await caller.kill();
    await harness.close();
  }
}

function within(ms: number): () => boolean {
  const end = performance.now() + ms;
  return () => performance.now() > end;
}

function medianOf(sorted: readonly number[]): string {
  return (sorted[Math.floor(sorted.length / 2)] ?? 0).toFixed(1);
}
