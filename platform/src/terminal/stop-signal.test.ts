import { EventEmitter } from 'node:events';
import { expect, it, onTestFinished, vi } from 'vitest';
import { stopSignal } from './stop-signal.ts';

/** Creates a stop signal; `ended` contains the signals that ended the process. */
function create(isUnderNpm: boolean) {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const source = new EventEmitter();
  const ended: string[] = [];
  const stop = stopSignal(source, (signal) => void ended.push(signal), isUnderNpm);
  return { source, ended, stop };
}

it('ignores a signal that npm forwards for the same Ctrl-C, and ends the process on a later signal (SYS-5)', () => {
  const { source, ended, stop } = create(false);
  expect(stop.aborted).toBe(false);
  source.emit('SIGINT');
  expect(stop.aborted).toBe(true);
  source.emit('SIGINT');
  vi.advanceTimersByTime(999);
  source.emit('SIGTERM');
  expect(ended).toEqual([]);
  vi.advanceTimersByTime(1);
  source.emit('SIGTERM');
  expect(ended).toEqual(['SIGTERM']);
});

it('ignores a signal that npm forwards seconds later, and ends the process on the next signal (SYS-5)', () => {
  const { source, ended } = create(true);
  source.emit('SIGINT');
  vi.advanceTimersByTime(5_000);
  source.emit('SIGINT');
  expect(ended).toEqual([]);
  source.emit('SIGINT');
  expect(ended).toEqual(['SIGINT']);
});

it('ends the process on a second signal of another kind, which npm has not forwarded (SYS-5)', () => {
  const { source, ended } = create(true);
  source.emit('SIGINT');
  vi.advanceTimersByTime(5_000);
  source.emit('SIGTERM');
  expect(ended).toEqual(['SIGTERM']);
});
