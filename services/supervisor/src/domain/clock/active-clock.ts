/** How long an agent was active: while it runs, but not while it waits for a person or is parked (EM-1). */
export interface ActiveClock {
  /** Active time that is over, in milliseconds. */
  readonly activeMs: number;
  /** Since when the clock runs; null while it stands. */
  readonly activeSince: Date | null;
  /** The last sign of life; null before the first. */
  readonly lastSeenAt: Date | null;
}

/** The clock of an agent that was never active. */
export const STANDING_CLOCK: ActiveClock = Object.freeze({
  activeMs: 0,
  activeSince: null,
  lastSeenAt: null,
});

/** Active milliseconds at the moment `at`; a clock that stepped back adds nothing. */
export function activeMsAt(clock: ActiveClock, at: Date): number {
  if (clock.activeSince === null) return clock.activeMs;
  return clock.activeMs + Math.max(0, at.getTime() - clock.activeSince.getTime());
}

/** The agent showed at `at` that it is alive: its clock runs, from now on if it stood. */
export function seen(clock: ActiveClock, at: Date): ActiveClock {
  return {
    activeMs: clock.activeMs,
    activeSince: clock.activeSince ?? at,
    lastSeenAt: later(clock.lastSeenAt, at),
  };
}

/** The agent sleeps or ended at `at`. */
export function stopped(clock: ActiveClock, at: Date): ActiveClock {
  return {
    activeMs: activeMsAt(clock, at),
    activeSince: null,
    lastSeenAt: later(clock.lastSeenAt, at),
  };
}

/**
 * The lease on the agent's slot ended at `at`, which may have been a while ago: what came after does
 * not count. An agent that was seen since has a lease again, at the latest from then on.
 */
export function lapsed(clock: ActiveClock, at: Date): ActiveClock {
  const { activeSince, lastSeenAt } = clock;
  if (activeSince === null || activeSince > at) return clock;
  const isBack = lastSeenAt !== null && lastSeenAt > at;
  return {
    activeMs: activeMsAt(clock, at),
    activeSince: isBack ? lastSeenAt : null,
    lastSeenAt,
  };
}

/** Nobody kept the clock since the agent's last sign of life, so that time does not count: after a restart of the supervisor. */
export function cut(clock: ActiveClock): ActiveClock {
  return stopped(clock, clock.lastSeenAt ?? clock.activeSince ?? new Date(0));
}

function later(earlier: Date | null, at: Date): Date {
  return earlier !== null && earlier > at ? earlier : at;
}
