import { InvalidRequestError, UnavailableError } from '@writ/kernel';
import { expect, it, vi } from 'vitest';
import { busFailures } from './bus-failures.ts';

it('logs an outage in one line every ten seconds, with host and port and without a stack (SYS-4)', () => {
  const lines: [object, string | undefined][] = [];
  const log = {
    warn: (fields: object, message?: string) => void lines.push([fields, message]),
    error: vi.fn(),
  };
  let now = 0;
  const report = busFailures(
    log,
    ['nats://user:secret@nats-1:4222', 'tls://nats-2:4222', 'nats-3:4222'],
    'bus failed',
    () => now,
  );
  const missing = new UnavailableError('BUS_STREAM_MISSING', 'Stream X does not exist yet.');
  for (now = 0; now <= 25_000; now += 100) report(missing, {});
  const fields = {
    reason: 'BUS_STREAM_MISSING',
    problem: 'Stream X does not exist yet.',
    servers: 'nats-1:4222, nats-2:4222, nats-3:4222',
  };
  expect(lines).toEqual(Array.from({ length: 3 }, () => [fields, 'waiting for NATS']));
  report(new UnavailableError('BUS_UNREACHABLE', 'Not connected to NATS.'), {});
  expect(lines).toHaveLength(4);
  const bug = new TypeError('undefined is not a function');
  report(bug, { subject: 'a' });
  report(bug, { subject: 'b' });
  expect(lines.slice(4).map(([logged]) => logged)).toEqual([
    { err: bug, subject: 'a' },
    { err: bug, subject: 'b' },
  ]);
  // The event handler cannot reach its database, which is not a NATS outage.
  const unreachable = new UnavailableError('STORE_UNREACHABLE', 'The database is unreachable.');
  report(unreachable, { subject: 'c' });
  expect(lines.at(-1)).toEqual([{ err: unreachable, subject: 'c' }, 'bus failed']);
});

it('does not mention NATS for an in-process bus (SYS-4)', () => {
  const log = { warn: vi.fn(), error: vi.fn() };
  const report = busFailures(log, [], 'event not delivered');
  const error = new UnavailableError('BUS_DELIVERY_FAILED', 'A subscriber failed.');
  for (let times = 0; times < 2; times += 1) report(error, {});
  const fields = { reason: 'BUS_DELIVERY_FAILED', problem: 'A subscriber failed.' };
  expect(log.warn.mock.calls).toEqual([[fields, 'event not delivered']]);
});

it('logs a dropped event as an error (SYS-4, SYS-6)', () => {
  const log = { warn: vi.fn(), error: vi.fn() };
  const report = busFailures(log, [], 'event not delivered');
  const err = new InvalidRequestError('MALFORMED_MESSAGE', 'Event e1 is not valid.');
  report(err, { eventId: 'e1', dropped: true });
  expect(log.error.mock.calls).toEqual([
    [{ err, eventId: 'e1', dropped: true }, 'event rejected as invalid and dropped'],
  ]);
  expect(log.warn).not.toHaveBeenCalled();
});
