import { describe, expect, it } from 'vitest';
import { pageToken, readPageToken } from './page-token.ts';

describe('page tokens', () => {
  it('lead to the place that they were made for', () => {
    const token = pageToken(['2026', 'run-1'], { agent: 'worker' });
    expect(readPageToken(token, { agent: 'worker' })).toEqual(['2026', 'run-1']);
    expect(readPageToken('', { agent: 'worker' })).toBeUndefined();
  });

  it('are good for the same filters only', () => {
    const token = pageToken(['2026', 'run-1'], { agent: 'worker' });
    expect(() => readPageToken(token, { agent: 'helper' })).toThrow('other filters');
  });

  it.each(['x', 'bnVsbA', 'WzFd', 'W10', '{}'])('refuse what is none: %s', (token) => {
    expect(() => readPageToken(token, {})).toThrow('page_token');
  });
});
