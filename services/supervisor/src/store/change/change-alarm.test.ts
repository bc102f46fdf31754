import { expect, it } from 'vitest';
import { ChangeAlarm, watchIntervalMs } from './change-alarm.ts';
import { Changes } from './changes.ts';

const POLL_MS = 1_000;
/** Sends and receives no hints, like a store without other replicas. */
const ALONE = { onHint: () => () => undefined, hint: () => undefined };

it('limits the reads of all watches together to 500 per second, and lets few watches read at the configured interval (BD-2)', () => {
  const changes = new Changes(ALONE);
  const signal = new AbortController().signal;
  const watches = Array.from({ length: 4_000 }, () => new ChangeAlarm(signal));
  const readsPerSecond = () => (changes.subscriptions * 1_000) / watchIntervalMs(changes, POLL_MS);
  for (const [index, watch] of watches.entries()) {
    watch.on(changes, `approvals:${index % 2}`);
    expect(readsPerSecond()).toBeLessThanOrEqual(500);
  }
  expect(changes.subscriptions).toBe(4_000);
  for (const watch of watches.slice(10)) watch.close();
  for (const watch of watches.slice(10)) watch.close();
  expect(changes.subscriptions).toBe(10);
  expect(watchIntervalMs(changes, POLL_MS)).toBe(POLL_MS);
});
