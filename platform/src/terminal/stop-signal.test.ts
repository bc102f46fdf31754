import { EventEmitter } from 'node:events';
import { expect, it, onTestFinished, vi } from 'vitest';
import { stopSignal } from './stop-signal.ts';

it('ignores a signal that npm forwards for the same Ctrl-C, and ends the process on a later signal (SYS-5)', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const source = new EventEmitter();
  const ended: string[] = [];
  const stop = stopSignal(source, (signal) => void ended.push(signal));
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
