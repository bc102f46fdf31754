import { getEventListeners } from 'node:events';
import { Code, ConnectError } from '@connectrpc/connect';
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { follow } from './follow.ts';

beforeEach(() => {
  const document = Object.assign(new EventTarget(), { hidden: false });
  vi.stubGlobal('document', document);
});

/** Follows streams of one message each, which end with an error; returns the calls of its callbacks. */
function followStreams(...errors: unknown[]) {
  const calls: unknown[] = [];
  let opened = 0;
  follow<number>({
    async *open() {
      opened += 1;
      yield opened;
      if (opened <= errors.length) throw errors[opened - 1];
    },
    onMessage: (message) => calls.push(message),
    onConnected: (isConnected) => calls.push(isConnected),
    onError: (error) => calls.push(error),
    isDone: () => opened > errors.length,
  });
  return { calls };
}

it.each([
  new TypeError('Error in input stream'),
  new TypeError('A message that no current browser uses.'),
  new ConnectError('missing EndStreamResponse', Code.Unknown),
  new ConnectError('The server is shutting down; retry.', Code.Unavailable),
  new ConnectError('protocol error: incomplete envelope', Code.InvalidArgument),
])('opens a stream again after %s (PE-2)', async (error) => {
  const { calls } = followStreams(error);
  await expect.poll(() => calls).toEqual([true, 1, false, true, 2]);
});

it.each([Code.Internal, Code.PermissionDenied, Code.Unauthenticated, Code.NotFound])(
  'reports an error of the platform, and that the stream is not connected: code %d (PE-2)',
  async (code) => {
    const error = new ConnectError('The stream failed.', code);
    const { calls } = followStreams(error);
    await expect.poll(() => calls).toEqual([true, 1, false, error]);
  },
);

it('reports an error that persists while it retries, unless the error is transient (PE-2)', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const error = new ConnectError('unsupported content type text/html', Code.Unknown);
  const unavailable = new ConnectError('The server is restarting.', Code.Unavailable);
  // Transient errors neither count nor are reported.
  const errors = [unavailable, error, error, unavailable, error, error, error, unavailable, error];
  const reported: unknown[] = [];
  let opened = 0;
  follow<number>({
    async *open() {
      opened += 1;
      const failure = errors[opened - 1];
      if (failure !== undefined) throw failure;
      yield opened;
    },
    onMessage: () => undefined,
    onConnected: () => undefined,
    onError: (reason) => reported.push(reason),
    isDone: () => opened > errors.length,
  });
  await vi.runAllTimersAsync();
  expect(reported).toEqual([error, error, undefined]);
  expect(opened).toBe(10);
});

it('keeps no listener of an earlier attempt while it reconnects (PE-2)', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const signals: AbortSignal[] = [];
  class RecordedController extends AbortController {
    constructor() {
      super();
      signals.push(this.signal);
    }
  }
  vi.stubGlobal('AbortController', RecordedController);
  const listeners: number[] = [];
  const stop = follow<number>({
    async *open() {
      const [stopped = expect.unreachable()] = signals;
      listeners.push(getEventListeners(stopped, 'abort').length);
      yield listeners.length;
    },
    onMessage: () => undefined,
    onConnected: () => undefined,
    onError: () => undefined,
    isDone: () => listeners.length === 4,
  });
  await vi.runAllTimersAsync();
  stop();
  expect(listeners).toEqual([1, 1, 1, 1]);
});

it('ends the pause before a reconnection when it is stopped (PE-2)', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let opened = 0;
  const connected: boolean[] = [];
  const stop = follow<number>({
    async *open() {
      opened += 1;
      yield opened;
    },
    onMessage: () => undefined,
    onConnected: (isConnected) => connected.push(isConnected),
    onError: () => undefined,
  });
  await vi.advanceTimersByTimeAsync(0);
  expect(connected).toEqual([true, false]);
  expect(vi.getTimerCount()).toBe(1);
  stop();
  expect(vi.getTimerCount()).toBe(0);
  await vi.runAllTimersAsync();
  expect(opened).toBe(1);
});
