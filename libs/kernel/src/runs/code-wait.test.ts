import { expect, it } from 'vitest';
import { type CodeWait, codeWaitFrom, codeWaitSentence, codeWaitSignal } from './code-wait.ts';

const WAIT: CodeWait = { mismatch: 'version_missing', subject: '2' };

it('converts a code wait to the name of a signal and back (RT-1)', () => {
  expect(codeWaitSignal(WAIT)).toBe('code:version_missing:2');
  expect(codeWaitFrom('code:version_missing:2')).toEqual(WAIT);
});

it.each(['approval:op-1', 'code:other:2', 'code', 'code:constructor:x'])(
  'returns undefined for the signal %s, which is not a code wait (RT-1)',
  (signal) => {
    expect(codeWaitFrom(signal)).toBeUndefined();
  },
);

it('limits the name to the maximum length of a signal name (BD-1)', () => {
  expect(codeWaitSignal({ ...WAIT, subject: 'v'.repeat(500) })).toHaveLength(160);
});

it('describes in the message what an operator can do (BD-6)', () => {
  expect(codeWaitSentence('writer-1', WAIT)).toBe(
    'Agent writer-1 waits for the code with which it started: the worker lacks version "2" of its code. Start a worker with the previous code, or cancel the run.',
  );
});
