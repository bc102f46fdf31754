import { InvalidRequestError, isStopReason, type Phase } from '@writ/kernel';

/** How a worker reports the end of its agent. */
export interface ReportedOutcome {
  readonly stopReason: string;
  readonly phase: Phase;
  /** The model call, review or tool call at which the agent stopped; empty when the worker names none. */
  readonly callId: string;
}

/** The supervisor's records of the agent and of the call that the worker named. */
export interface OutcomeEvidence {
  readonly decision:
    | { readonly stopReason: string | null; readonly phase: Phase | null }
    | undefined;
  readonly receipt: { readonly stopReason: string | null } | undefined;
  readonly steps: number;
  /** Undefined = unlimited. */
  readonly maxSteps: number | undefined;
  readonly activeMs: number;
  readonly maxActiveMs: number | undefined;
  readonly now: Date;
  readonly deadlineAt: Date | null;
}

/** The ending to record. */
export interface CheckedOutcome {
  readonly phase: Phase;
  /** Whether no record of the supervisor confirms the report. */
  readonly unverified: boolean;
}

/** Endings that a worker cannot report: an approved final answer, a person or the supervisor causes them. */
const NOT_REPORTABLE = ['success', 'nothing_done', 'closed', 'paused', 'cancelled', 'halted'];

/**
 * Checks what a worker reported against the supervisor's records (SV-7). An unconfirmed report still ends the agent,
 * because a worker can always stop, but the ending is marked as unverified.
 * @throws InvalidRequestError INVALID_STOP_REASON, OUTCOME_NOT_REPORTABLE
 */
export function checkReportedOutcome(
  reported: ReportedOutcome,
  evidence: OutcomeEvidence,
): CheckedOutcome {
  const { stopReason, phase } = reported;
  const field = 'stop_reason';
  if (!isStopReason(stopReason)) {
    throw new InvalidRequestError('INVALID_STOP_REASON', `${field} is not a known stop reason.`, {
      field,
    });
  }
  if (NOT_REPORTABLE.includes(stopReason)) {
    throw new InvalidRequestError(
      'OUTCOME_NOT_REPORTABLE',
      `${field} ${stopReason} cannot be reported. To end the run with an answer, call ReviewAction; people end a run with CancelRun or Halt.`,
      { field },
    );
  }
  const { decision, receipt } = evidence;
  if (decision?.stopReason === stopReason) {
    return { phase: decision.phase ?? phase, unverified: false };
  }
  if (receipt?.stopReason === stopReason) return { phase: 'execution', unverified: false };
  return { phase, unverified: !isLimitReached(stopReason, evidence) };
}

function isLimitReached(stopReason: string, evidence: OutcomeEvidence): boolean {
  const { steps, maxSteps, activeMs, maxActiveMs, now, deadlineAt } = evidence;
  switch (stopReason) {
    case 'max_steps':
      return maxSteps !== undefined && steps >= maxSteps;
    case 'max_seconds':
      return maxActiveMs !== undefined && activeMs >= maxActiveMs;
    case 'deadline':
      return deadlineAt !== null && now >= deadlineAt;
    default:
      return false;
  }
}
