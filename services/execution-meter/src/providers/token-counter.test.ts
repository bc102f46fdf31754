import fc from 'fast-check';
import { expect, it } from 'vitest';
import { bytesOf } from '../domain/chat/prompt-size.ts';
import { countTokens } from './token-counter.ts';

it('counts tokens like current models, and treats control tokens as text (EM-8)', async () => {
  expect(await countTokens(['Hello, world!'])).toBe(4n);
  expect(await countTokens([])).toBe(0n);
  expect(await countTokens(['<|endoftext|>'])).toBeGreaterThan(1n);
});

it('never counts more tokens than bytes, which reservations rely on (EM-3)', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string({ unit: 'grapheme', maxLength: 60 })), async (texts) => {
      expect((await countTokens(texts)) <= bytesOf(texts)).toBe(true);
    }),
    { numRuns: 200 },
  );
});

it('takes linear time even for one long word (EM-8)', async () => {
  const timed = async (length: number): Promise<number> => {
    const started = performance.now();
    await countTokens(['a'.repeat(length)]);
    return performance.now() - started;
  };
  await timed(20_000);
  const short: number[] = [];
  const long: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    short.push(await timed(40_000));
    long.push(await timed(160_000));
  }
  // The long text is four times the short one, so quadratic time would be sixteen times as long. The minimum excludes
  // rounds that other processes slowed down.
  expect(Math.min(...long)).toBeLessThan(Math.min(...short) * 10);
});
