import { cacheSizes } from '@writ/kernel';
import type { Metrics } from './metrics.ts';

/** Registers the size metrics of all caches of this process, with the cache name as label. */
export function observeCaches(metrics: Metrics): void {
  if (!metrics.enabled) return;
  metrics.observe('cacheBytes', () =>
    cacheSizes().map(({ name, bytes }) => ({ value: bytes, labels: { 'writ.cache': name } })),
  );
  metrics.observe('cacheEntries', () =>
    cacheSizes().map(({ name, entries }) => ({ value: entries, labels: { 'writ.cache': name } })),
  );
}
