import { EventEmitter } from 'node:events';
import type { TLSSocket } from 'node:tls';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { closeAtExpiry } from './grpc-connections.ts';

const DAY_MS = 86_400_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A connection whose client certificate expires in `days`. */
function connection(days: number) {
  const destroy = vi.fn();
  const valid_to = new Date(Date.now() + days * DAY_MS).toUTCString();
  const getPeerCertificate = () => ({ raw: Buffer.alloc(1), valid_to });
  const socket = Object.assign(new EventEmitter(), { destroy, getPeerCertificate });
  closeAtExpiry(socket as unknown as TLSSocket);
  return { destroy, socket };
}

it('closes a connection when the client certificate expires after a year (SYS-4)', () => {
  const { destroy } = connection(365);
  vi.advanceTimersByTime(364 * DAY_MS);
  expect(destroy).not.toHaveBeenCalled();
  vi.advanceTimersByTime(DAY_MS);
  expect(destroy).toHaveBeenCalledTimes(1);
});

it('clears the timer when the connection closes (BD-1)', () => {
  const { socket } = connection(365);
  vi.advanceTimersByTime(100 * DAY_MS);
  socket.emit('close');
  expect(vi.getTimerCount()).toBe(0);
});
