import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TextPiece } from '../domain/calls/model-call.ts';
import { DeltaText } from './progress.ts';

function open() {
  const shown: TextPiece[] = [];
  return { text: new DeltaText((piece) => shown.push(piece)), shown };
}

describe('the text of a model call', () => {
  it('is published in pieces, each with its byte offset (SUP-1)', () => {
    const { text, shown } = open();
    text.begun();
    text.attemptStarted(1);
    text.textGenerated('für ');
    text.textGenerated('Anna');
    expect(shown).toEqual([
      { attempt: 1, textOffset: 0, textDelta: 'für ' },
      { attempt: 1, textOffset: 5, textDelta: 'Anna' },
    ]);
  });

  it('is not published again when the call is retried, but continues (EM-7)', () => {
    const { text, shown } = open();
    text.begun();
    text.attemptStarted(1);
    text.textGenerated('one');
    text.attemptStarted(2);
    text.textGenerated('two');
    text.begun();
    text.attemptStarted(1);
    text.textGenerated('one');
    text.attemptStarted(2);
    text.textGenerated('two');
    text.textGenerated('three');
    expect(shown.map(({ attempt, textDelta }) => `${attempt} ${textDelta}`)).toEqual([
      '1 one',
      '2 two',
      '2 three',
    ]);
  });

  it('is split into bounded pieces that concatenate to the whole text', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), { maxLength: 5 }),
        fc.integer({ min: 1, max: 2000 }),
        (words, times) => {
          const { text, shown } = open();
          text.begun();
          text.attemptStarted(1);
          const generated = words.map((word) => word.repeat(times));
          for (const each of generated) text.textGenerated(each);
          const bytes = Buffer.concat(shown.map(({ textDelta }) => Buffer.from(textDelta)));
          expect(bytes.toString()).toBe(generated.join(''));
          for (const { textDelta, textOffset } of shown) {
            expect(textDelta.length).toBeLessThanOrEqual(4096);
            const end = textOffset + Buffer.byteLength(textDelta);
            expect(bytes.subarray(textOffset, end).toString()).toBe(textDelta);
          }
        },
      ),
      { numRuns: 50 },
    );
  });
});
