import { describe, expect, it } from 'vitest';
import { pageNumber, pageTime, pageToken, readPageToken } from './page-token.ts';

describe('page tokens', () => {
  it('return their position', () => {
    const token = pageToken(['2026', 'run-1'], { agent: 'worker' });
    expect(readPageToken(token, { agent: 'worker' }, 2)).toEqual(['2026', 'run-1']);
    expect(readPageToken('', { agent: 'worker' }, 2)).toBeUndefined();
  });

  it('are valid only with the same filters', () => {
    const token = pageToken(['2026', 'run-1'], { agent: 'worker' });
    expect(() => readPageToken(token, { agent: 'helper' }, 2)).toThrow('other filters');
  });

  it.each([[], [''], ['2026', ''], ['2026', 'run-1', 'more']].map((position) => [position]))(
    'are rejected with parts %j instead of two nonempty strings',
    (position) => {
      expect(() => readPageToken(pageToken(position, {}), {}, 2)).toThrow('is malformed');
    },
  );

  it.each(['x', '-1', '1.5', 'Infinity'])('reject %s as a number or time', (text) => {
    expect(() => pageNumber(text)).toThrow('page_token');
    expect(() => pageTime(text)).toThrow('page_token');
  });

  it.each(['x', 'bnVsbA', 'WzFd', 'W10', '{}'])('reject a malformed token: %s', (token) => {
    expect(() => readPageToken(token, {}, 1)).toThrow('page_token');
  });
});
