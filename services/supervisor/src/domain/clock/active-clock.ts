/**
 * The active time of an agent. The clock runs while the agent runs, and while the agent waits if an agent below it
 * runs; otherwise it is stopped (EM-1).
 */
export interface ActiveClock {
  /** Active time of past periods, in milliseconds. */
  readonly activeMs: number;
  /** Start of the current active period; null while the clock is stopped. */
  readonly activeSince: Date | null;
  /** Time of the last activity; null before the first. */
  readonly lastSeenAt: Date | null;
}

/** The clock of an agent that was never active. */
export const STOPPED_CLOCK: ActiveClock = Object.freeze({
  activeMs: 0,
  activeSince: null,
  lastSeenAt: null,
});

/**
 * Returns the active time at `at`, in milliseconds; never less than the recorded time, even if the system clock was set
 * back.
 */
export function activeMsAt(clock: ActiveClock, at: Date): number {
  if (clock.activeSince === null) return clock.activeMs;
  return clock.activeMs + Math.max(0, at.getTime() - clock.activeSince.getTime());
}

/** Returns the running clock after an activity at `at`; a stopped clock starts at `at`. */
export function seen(clock: ActiveClock, at: Date): ActiveClock {
  return {
    activeMs: clock.activeMs,
    activeSince: clock.activeSince ?? at,
    lastSeenAt: later(clock.lastSeenAt, at),
  };
}

/** The clock after the agent was suspended, parked or ended at `at`. */
export function stopped(clock: ActiveClock, at: Date): ActiveClock {
  return {
    activeMs: activeMsAt(clock, at),
    activeSince: null,
    lastSeenAt: later(clock.lastSeenAt, at),
  };
}

/**
 * Returns the clock after the lease on the agent's slot expired at `at`, which may be in the past. Time after `at` is
 * not counted. Exception: if the agent was active after `at`, it has a new lease, and the time since its last activity
 * is counted.
 */
export function leaseExpired(clock: ActiveClock, at: Date): ActiveClock {
  const { activeSince, lastSeenAt } = clock;
  if (activeSince === null || activeSince > at) return clock;
  const wasActiveLater = lastSeenAt !== null && lastSeenAt > at;
  return {
    activeMs: activeMsAt(clock, at),
    activeSince: wasActiveLater ? lastSeenAt : null,
    lastSeenAt,
  };
}

/** Returns the clock, stopped at the last activity, after a restart of the supervisor. */
export function cut(clock: ActiveClock): ActiveClock {
  return stopped(clock, clock.lastSeenAt ?? clock.activeSince ?? new Date(0));
}

function later(earlier: Date | null, at: Date): Date {
  return earlier !== null && earlier > at ? earlier : at;
}
