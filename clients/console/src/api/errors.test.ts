import { Code, ConnectError } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { isTransient, sentenceOf } from './errors.ts';

describe('the errors that the console shows', () => {
  it.each([
    ['Chromium', 'Failed to fetch'],
    ['Firefox', 'NetworkError when attempting to fetch resource.'],
    ['WebKit', 'Load failed'],
    ['Chromium, while a stream is read', 'network error'],
    ['Firefox, while a stream is read', 'Error in input stream'],
    ['WebKit, while a stream is read', 'The network connection was lost.'],
  ])('report an unreachable server as retryable in %s (PE-2)', (_, message) => {
    const error = new TypeError(message);
    expect(sentenceOf(error)).toMatch(/^Writ cannot be reached\./);
    expect(isTransient(error)).toBe(true);
  });

  it('keep the error message of the server (PE-2)', () => {
    const sentence = 'The public keys of supervisor cannot be fetched.';
    expect(sentenceOf(new ConnectError(sentence, Code.Unavailable))).toBe(sentence);
    expect(isTransient(new ConnectError('The run does not exist.', Code.NotFound))).toBe(false);
  });
});
