import { expect, it } from 'vitest';
import { nextCallNumber } from './number-model-call.ts';

const LATEST = { number: 3, delivered: false, connected: false };

it.each([
  ['without an earlier equal request', undefined, false, 1],
  ['after an answer that was delivered', { ...LATEST, delivered: true }, false, 4],
  ['while the previous client is connected', { ...LATEST, connected: true }, false, 4],
  ['after the previous client disconnected without its answer', LATEST, false, 3],
  [
    'marked as a retry while the previous client is connected',
    { ...LATEST, connected: true },
    true,
    3,
  ],
  ['marked as a retry after a delivered answer', { ...LATEST, delivered: true }, true, 3],
])('numbers a request %s (AP-2)', (_, latest, isRetry, expected) => {
  expect(nextCallNumber(latest, isRetry)).toBe(expected);
});
