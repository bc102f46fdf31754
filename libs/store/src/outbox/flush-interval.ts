/** In a steady stream, flushes are this many times the interval apart. */
const STREAM_FACTOR = 5;

/** The waiters of one interval, and the time of their last flush. */
interface Schedule {
  next: Promise<void> | undefined;
  lastAt: number;
}

const schedules = new Map<number, Schedule>();

/**
 * Resolves at the same time for all callers in this process with the same interval, so that their work shares commits.
 * After an idle period that is `ms` milliseconds from now; in a steady stream it is five times as long after the
 * previous flush, because larger batches cost less per message.
 */
export function nextFlush(ms: number): Promise<void> {
  const schedule = schedules.get(ms) ?? { next: undefined, lastAt: Number.NEGATIVE_INFINITY };
  schedules.set(ms, schedule);
  schedule.next ??= flushAt(
    schedule,
    Math.max(ms, schedule.lastAt + STREAM_FACTOR * ms - performance.now()),
  );
  return schedule.next;
}

async function flushAt(schedule: Schedule, ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
  schedule.next = undefined;
  schedule.lastAt = performance.now();
}
