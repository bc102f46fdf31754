import { expect, it } from 'vitest';
import { nextCallNumber } from './number-model-call.ts';

const LATEST = { number: 3, delivered: false, connected: false };

it.each([
  ['the first', undefined, false, 1],
  ['one after an answer that arrived', { ...LATEST, delivered: true }, false, 4],
  ['one beside a client that still waits', { ...LATEST, connected: true }, false, 4],
  ['one after a client that left without its answer', LATEST, false, 3],
  ['a retry by its header, also beside', { ...LATEST, connected: true }, true, 3],
  ['a retry by its header, also after', { ...LATEST, delivered: true }, true, 3],
])('an equal request is numbered: %s (AP-2)', (_, latest, isRetry, expected) => {
  expect(nextCallNumber(latest, isRetry)).toBe(expected);
});
