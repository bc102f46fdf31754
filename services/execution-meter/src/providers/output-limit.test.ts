import { describe, expect, it } from 'vitest';
import { OutputLimit } from './output-limit.ts';

/** Adds `piece` up to `most` times; returns how many pieces are admitted. */
async function admitted(limit: OutputLimit, piece: string, most: number): Promise<number> {
  for (let count = 0; count < most; count += 1) if (await limit.exceedsWith(piece)) return count;
  return most;
}

describe('OutputLimit', () => {
  it('admits the requested output in chunks of any size (EM-8)', async () => {
    // ' word' is one token in every tokenizer.
    expect(await admitted(new OutputLimit(2_000n), ' word', 2_000)).toBe(2_000);
    expect(await admitted(new OutputLimit(2_000n), ' word'.repeat(2_000), 1)).toBe(1);
    const characters = [...' word'.repeat(200)];
    const limit = new OutputLimit(200n);
    for (const character of characters) expect(await limit.exceedsWith(character)).toBe(false);
  });

  it('ends an output before it is twice as long as requested (EM-8)', async () => {
    const pieces = await admitted(new OutputLimit(5_000n), ' word'.repeat(10), 10_000);
    expect(pieces).toBeGreaterThanOrEqual(500);
    expect(pieces).toBeLessThan(1_000);
  });

  it('ends a stream of chunks without content (BD-1)', async () => {
    expect(await admitted(new OutputLimit(10n), '', 5_000)).toBeLessThan(1_200);
  });
});
