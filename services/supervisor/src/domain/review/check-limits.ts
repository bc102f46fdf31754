/** How much of its time and steps an agent has used. */
export interface Usage {
  readonly now: Date;
  /** When the run must be over; null when it need not. */
  readonly deadlineAt: Date | null;
  readonly activeMs: number;
  /** Undefined = unlimited. */
  readonly maxActiveMs: number | undefined;
  /** Steps before this one. */
  readonly steps: number;
  readonly maxSteps: number | undefined;
  /** The one composed final of an agent, which counts no step (SV-1). */
  readonly countsNoStep: boolean;
}

/** The stop reason of an agent that may propose nothing more. */
export type LimitReached = 'deadline' | 'max_seconds' | 'max_steps';

/** Whether an agent still has time and steps for one more proposal; time comes first (AG-7, EM-1). */
export function limitReached(usage: Usage): LimitReached | undefined {
  const { now, deadlineAt, activeMs, maxActiveMs, steps, maxSteps, countsNoStep } = usage;
  if (deadlineAt !== null && now >= deadlineAt) return 'deadline';
  if (maxActiveMs !== undefined && activeMs > maxActiveMs) return 'max_seconds';
  if (!countsNoStep && maxSteps !== undefined && steps >= maxSteps) return 'max_steps';
  return undefined;
}
