/** How long an agent was active: while it runs, not while it waits for a person or is parked (EM-1). */
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

/** Active milliseconds at `at`; a clock that was set back adds nothing. */
export function activeMsAt(clock: ActiveClock, at: Date): number {
  if (clock.activeSince === null) return clock.activeMs;
  return clock.activeMs + Math.max(0, at.getTime() - clock.activeSince.getTime());
}

/** The clock after an activity at `at`: it runs, from `at` if it was stopped. */
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
 * The clock after the lease on the agent's slot expired at `at`, which may be in the past: later time does not
 * count. An agent that was active after `at` has a new lease, at the latest from its last activity on.
 */
export function leaseExpired(clock: ActiveClock, at: Date): ActiveClock {
  const { activeSince, lastSeenAt } = clock;
  if (activeSince === null || activeSince > at) return clock;
  const isBack = lastSeenAt !== null && lastSeenAt > at;
  return {
    activeMs: activeMsAt(clock, at),
    activeSince: isBack ? lastSeenAt : null,
    lastSeenAt,
  };
}

/** The clock after a restart of the supervisor: time after the last activity does not count. */
export function cut(clock: ActiveClock): ActiveClock {
  return stopped(clock, clock.lastSeenAt ?? clock.activeSince ?? new Date(0));
}

function later(earlier: Date | null, at: Date): Date {
  return earlier !== null && earlier > at ? earlier : at;
}
