/** Number of intervals between two flushes while callers arrive continuously. */
const STREAM_FACTOR = 5;

/** The pending flush of one interval, if any, and the time of the previous flush. */
interface Schedule {
  next: Promise<void> | undefined;
  lastAt: number;
}

const schedules = new Map<number, Schedule>();

/**
 * Resolves at the same time for all callers in this process with the same interval, so that their work shares commits.
 * After an idle period, it resolves `ms` milliseconds from now; while callers arrive continuously, it resolves five
 * intervals after the previous flush, because larger batches cost less per message.
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
