import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { Metrics } from './metrics.ts';

const RESOLUTION_MS = 20;
const NANOS = 1e9;

/** Registers the metrics of event loop delay and utilization. Returns a function that stops them. */
export function observeEventLoop(metrics: Metrics): () => void {
  if (!metrics.enabled) return () => undefined;
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  let before = performance.eventLoopUtilization();
  metrics.observe('eventLoopDelay', () => {
    const value = delay.percentile(99) / NANOS;
    delay.reset();
    return [{ value }];
  });
  metrics.observe('eventLoopUse', () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return [{ value: utilization }];
  });
  return () => delay.disable();
}
