import { describe, expect, it } from 'vitest';
import { pageNumber, pageTime, pageToken, readPageToken } from './page-token.ts';

describe('page tokens', () => {
  it('lead to the place that they were made for', () => {
    const token = pageToken(['2026', 'run-1'], { agent: 'worker' });
    expect(readPageToken(token, { agent: 'worker' }, 2)).toEqual(['2026', 'run-1']);
    expect(readPageToken('', { agent: 'worker' }, 2)).toBeUndefined();
  });

  it('are good for the same filters only', () => {
    const token = pageToken(['2026', 'run-1'], { agent: 'worker' });
    expect(() => readPageToken(token, { agent: 'helper' }, 2)).toThrow('other filters');
  });

  it.each([[], [''], ['2026', ''], ['2026', 'run-1', 'more']].map((position) => [position]))(
    'are no place when they have %j of two parts',
    (position) => {
      expect(() => readPageToken(pageToken(position, {}), {}, 2)).toThrow('not one that');
    },
  );

  it.each(['x', '-1', '1.5', 'Infinity'])('hold no number or time such as %s', (text) => {
    expect(() => pageNumber(text)).toThrow('page_token');
    expect(() => pageTime(text)).toThrow('page_token');
  });

  it.each(['x', 'bnVsbA', 'WzFd', 'W10', '{}'])('refuse what is none: %s', (token) => {
    expect(() => readPageToken(token, {}, 1)).toThrow('page_token');
  });
});
