import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, it, onTestFinished, vi } from 'vitest';
import { WakeableLoop, type WakeableLoopOptions } from './wakeable-loop.ts';

const FOREVER = 1_000_000_000;

function loopOf(options: Partial<WakeableLoopOptions> & Pick<WakeableLoopOptions, 'pass'>) {
  const onError = vi.fn();
  const loop = new WakeableLoop({ intervalMs: FOREVER, onError, ...options });
  onTestFinished(() => loop.stop());
  return { loop, onError };
}

it('runs a pass at the start and one for each wake-up', async () => {
  const pass = vi.fn(async () => undefined);
  const { loop } = loopOf({ pass });
  loop.start();
  await vi.waitFor(() => expect(pass).toHaveBeenCalledTimes(1));
  loop.wake();
  await vi.waitFor(() => expect(pass).toHaveBeenCalledTimes(2));
});

it('runs another pass for a wake-up that comes during a pass', async () => {
  const first = Promise.withResolvers<void>();
  const pass = vi.fn(() => (pass.mock.calls.length === 1 ? first.promise : Promise.resolve()));
  const { loop } = loopOf({ pass });
  loop.start();
  loop.wake();
  expect(pass).toHaveBeenCalledTimes(1);
  first.resolve();
  await vi.waitFor(() => expect(pass).toHaveBeenCalledTimes(2));
});

it('repeats after the interval, or after the pause that the pass returns', async () => {
  const periodic = vi.fn(async () => undefined);
  loopOf({ pass: periodic, intervalMs: 1 }).loop.start();
  const pausing = vi.fn(async () => (pausing.mock.calls.length < 5 ? 0 : FOREVER));
  loopOf({ pass: pausing }).loop.start();
  await vi.waitFor(() => expect(periodic.mock.calls.length).toBeGreaterThan(2));
  await vi.waitFor(() => expect(pausing).toHaveBeenCalledTimes(5));
});

it('backs off after a failure regardless of wake-ups, and resets the back-off after a success', async () => {
  let failures = 2;
  const pass = vi.fn(async () => {
    failures -= 1;
    if (failures >= 0) throw new Error('down');
    return undefined;
  });
  const { loop, onError } = loopOf({ pass, backoff: { baseMs: 5, maxMs: 10 } });
  onError.mockImplementation(() => loop.wake());
  loop.start();
  await vi.waitFor(() => expect(pass.mock.calls.length).toBeGreaterThan(2));
  expect(onError.mock.calls.map(([, retry]) => retry.attempt)).toEqual([1, 2]);
  failures = 1;
  loop.wake();
  await vi.waitFor(() => expect(onError).toHaveBeenCalledTimes(3));
  expect(onError.mock.lastCall?.[1].attempt).toBe(1);
});

it('resets the back-off after progress', async () => {
  const pass = vi.fn(async () => {
    if (pass.mock.calls.length === 3) loop.resetBackoff();
    if (pass.mock.calls.length < 5) throw new Error('down');
  });
  const { loop, onError } = loopOf({ pass, backoff: { baseMs: 1, maxMs: 1 } });
  loop.start();
  await vi.waitFor(() => expect(pass).toHaveBeenCalledTimes(5));
  expect(onError.mock.calls.map(([, retry]) => retry.attempt)).toEqual([1, 2, 1, 2]);
});

it('waits for a wake-up after an infinite pause', async () => {
  const timers = vi.spyOn(globalThis, 'setTimeout');
  onTestFinished(() => timers.mockRestore());
  const pass = vi.fn(async () => Number.POSITIVE_INFINITY);
  const { loop } = loopOf({ pass });
  loop.start();
  await Promise.resolve();
  await Promise.resolve();
  expect(timers).not.toHaveBeenCalled();
  loop.wake();
  await vi.waitFor(() => expect(pass).toHaveBeenCalledTimes(2));
});

it('ends after the current pass', async () => {
  const current = Promise.withResolvers<void>();
  const pass = vi.fn(() => current.promise);
  const { loop } = loopOf({ pass });
  loop.start();
  let isStopped = false;
  const stopped = loop.stop().then(() => {
    isStopped = true;
  });
  loop.wake();
  await Promise.resolve();
  expect(isStopped).toBe(false);
  current.resolve();
  await stopped;
  loop.start();
  expect(pass).toHaveBeenCalledTimes(1);
});

it('runs outside the context of the caller that wakes it', async () => {
  const storage = new AsyncLocalStorage<string>();
  const seen: (string | undefined)[] = [];
  const pass = async () => {
    seen.push(storage.getStore());
  };
  const { loop } = loopOf({ pass });
  storage.run('caller', () => loop.start());
  storage.run('caller', () => loop.wake());
  await vi.waitFor(() => expect(seen.length).toBeGreaterThan(0));
  expect(new Set(seen)).toEqual(new Set([undefined]));
});
