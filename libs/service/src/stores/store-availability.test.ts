import { ManualClock, UnavailableError } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { StoreAvailability } from './store-availability.ts';

const { log } = createTelemetry({ service: 'test', logLevel: 'silent' });
const unreachable = new UnavailableError('STORE_UNREACHABLE', 'Unreachable.');
const answers = () => Promise.resolve();
const fails = () => Promise.reject(unreachable);
const hangs = () => Promise.withResolvers<void>().promise;

describe('StoreAvailability', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** Starts checks of a database that behaves like the last element of `database`. */
  function start() {
    const clock = new ManualClock();
    const database: (() => Promise<void>)[] = [answers];
    const changes: boolean[] = [];
    const availability = new StoreAvailability({
      store: { checkAvailable: async () => await database.at(-1)?.() },
      log,
      clock,
      onChange: (isAvailable) => changes.push(isAvailable),
    });
    availability.start();
    onTestFinished(() => availability.stop());
    /** Advances timers by `ms`, and the clock also by `stalledMs`, as if the process had stalled. */
    const pass = async (ms: number, stalledMs = 0) => {
      clock.advance(ms + stalledMs);
      await vi.advanceTimersByTimeAsync(ms);
    };
    return { database, changes, pass };
  }

  it('reports a database that fails or does not answer within 6 s, until it answers (SYS-4)', async () => {
    const { database, changes, pass } = start();
    await pass(1_000);
    database.push(fails);
    await pass(1_000);
    expect(changes).toEqual([false]);
    database.push(answers);
    await pass(1_000);
    expect(changes).toEqual([false, true]);
    database.push(hangs);
    await pass(6_900);
    expect(changes).toEqual([false, true]);
    await pass(100);
    expect(changes).toEqual([false, true, false]);
  });

  it('does not report an unavailable database after the first check that this process delayed (SYS-4)', async () => {
    const { database, changes, pass } = start();
    database.push(hangs);
    await pass(1_000);
    await pass(6_000, 3_000);
    expect(changes).toEqual([]);
    // The next check decides, also if it is delayed.
    await pass(1_000);
    await pass(6_000, 3_000);
    expect(changes).toEqual([false]);
  });
});
