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
    onFailed: (error) => calls.push(error),
    isDone: () => opened > errors.length,
  });
  return { calls };
}

it.each([
  new TypeError('Error in input stream'),
  new TypeError('A message that no browser had when this was written.'),
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

it('reports an error that lasts, and may not be that of a lost connection, after some attempts (PE-2)', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const error = new ConnectError('unsupported content type text/html', Code.Unknown);
  const failed: unknown[] = [];
  let opened = 0;
  follow<number>({
    // biome-ignore lint/correctness/useYield: this stream fails before its first message
    async *open() {
      opened += 1;
      throw error;
    },
    onMessage: () => undefined,
    onConnected: () => undefined,
    onFailed: (reason) => failed.push(reason),
  });
  await vi.runAllTimersAsync();
  expect(failed).toEqual([error]);
  expect(opened).toBe(6);
});
