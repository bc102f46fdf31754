import { expect, it } from 'vitest';
import { settlesWithin, withTimeout } from './with-timeout.ts';

const never = new Promise<never>(() => undefined);

it('returns the result of work that finishes in time', async () => {
  expect(await withTimeout(Promise.resolve(7), 60_000, () => 'late')).toBe(7);
});

it('throws the error of work that fails in time', async () => {
  const failed = Promise.reject(new Error('no'));
  await expect(withTimeout(failed, 60_000, () => 'late')).rejects.toThrow('no');
});

it('returns the result of onTimeout after the time limit', async () => {
  expect(await withTimeout(never, 1, () => 'late')).toBe('late');
});

it('throws what onTimeout throws', async () => {
  const work = withTimeout(never, 1, () => {
    throw new Error('too late');
  });
  await expect(work).rejects.toThrow('too late');
});

it('discards a rejection after the time limit', async () => {
  const work = Promise.withResolvers<never>();
  expect(await withTimeout(work.promise, 1, () => 'late')).toBe('late');
  work.reject(new Error('unhandled'));
  await new Promise((resolve) => setImmediate(resolve));
});

it('returns whether work settles in time, by result or rejection', async () => {
  expect(await settlesWithin(Promise.resolve(), 60_000)).toBe(true);
  expect(await settlesWithin(Promise.reject(new Error('no')), 60_000)).toBe(true);
  expect(await settlesWithin(never, 1)).toBe(false);
});
