import { expect, it } from 'vitest';
import { freePorts } from './free-ports.ts';

it('returns each port to only one of two concurrent callers', async () => {
  const range = { first: 19_000, last: 19_060 };
  const all = await Promise.all([freePorts(20, range), freePorts(20, range)]);
  expect(new Set(all.flat()).size).toBe(40);
});
