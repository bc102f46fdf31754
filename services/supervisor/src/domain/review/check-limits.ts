/** The time and steps that an agent has used. */
export interface Usage {
  readonly now: Date;
  /** Null without a deadline. */
  readonly deadlineAt: Date | null;
  readonly activeMs: number;
  /** Undefined = unlimited. */
  readonly maxActiveMs: number | undefined;
  /** Steps before this one. */
  readonly steps: number;
  readonly maxSteps: number | undefined;
  /** Whether the proposal is the one composed final of its agent, which does not count as a step (SV-1). */
  readonly countsNoStep: boolean;
}

/** The stop reason of an agent that has reached a limit. */
export type LimitReached = 'deadline' | 'max_seconds' | 'max_steps';

/**
 * The limit that an agent has reached, undefined when it may propose again. Time is checked first (AG-7, EM-1).
 */
export function limitReached(usage: Usage): LimitReached | undefined {
  const { now, deadlineAt, activeMs, maxActiveMs, steps, maxSteps, countsNoStep } = usage;
  if (deadlineAt !== null && now >= deadlineAt) return 'deadline';
  if (maxActiveMs !== undefined && activeMs > maxActiveMs) return 'max_seconds';
  if (!countsNoStep && maxSteps !== undefined && steps >= maxSteps) return 'max_steps';
  return undefined;
}
