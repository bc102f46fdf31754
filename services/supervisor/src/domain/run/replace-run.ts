/** The last run of a conversation of an agent key. */
export interface LastRun {
  readonly stopReason: string;
  /** Hash of the definition with which it started. */
  readonly definitionHash: string;
  readonly deadlineAt: Date | null;
}

/**
 * Whether the next request of an agent key opens another run. A run that reached a cap or was cancelled is not replaced
 * before its deadline, unless the definition of its agent has changed: otherwise each request would reset the cap, and
 * a cancellation would last only until the next request (AP-1, EM-2).
 */
export function mayReplace(last: LastRun, definitionHash: string, now: Date): boolean {
  const { stopReason, deadlineAt } = last;
  if (!/^(budget_exhausted:|max_)/.test(stopReason) && stopReason !== 'cancelled') return true;
  if (last.definitionHash !== definitionHash) return true;
  return deadlineAt !== null && deadlineAt <= now;
}
