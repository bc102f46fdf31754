import { InvalidRequestError, isStopReason, type Phase } from '@writ/kernel';

/** How a worker says that its agent ended. */
export interface OutcomeClaim {
  readonly stopReason: string;
  readonly phase: Phase;
  /** The model call, review or tool call that it stopped at; empty when it names none. */
  readonly callId: string;
}

/** What the supervisor knows about the call that the claim names, and about the agent. */
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
  /** Nothing that the supervisor knows agrees with the claim. */
  readonly unverified: boolean;
}

/** Endings that are never a worker's to tell: they are approved, ordered or decided elsewhere. */
const NOT_REPORTABLE = ['success', 'paused', 'cancelled', 'halted'];

/**
 * Holds a worker's claim against what the supervisor knows (SV-7). A claim that nothing agrees with
 * still ends the agent, since a worker can always give up, but is marked as its word only.
 * @throws InvalidRequestError INVALID_STOP_REASON, OUTCOME_NOT_REPORTABLE
 */
export function checkOutcome(claim: OutcomeClaim, evidence: OutcomeEvidence): CheckedOutcome {
  const { stopReason, phase } = claim;
  const field = 'stop_reason';
  if (!isStopReason(stopReason)) {
    throw new InvalidRequestError('INVALID_STOP_REASON', `${field} is not a known stop reason.`, {
      field,
    });
  }
  if (NOT_REPORTABLE.includes(stopReason)) {
    throw new InvalidRequestError(
      'OUTCOME_NOT_REPORTABLE',
      `${field} ${stopReason} cannot be reported: an answer ends a run through ReviewAction, and people end it through the supervisor.`,
      { field },
    );
  }
  const { decision, receipt } = evidence;
  if (decision?.stopReason === stopReason) {
    return { phase: decision.phase ?? phase, unverified: false };
  }
  if (receipt?.stopReason === stopReason) return { phase: 'execution', unverified: false };
  return { phase, unverified: !knownOtherwise(stopReason, evidence) };
}

function knownOtherwise(stopReason: string, evidence: OutcomeEvidence): boolean {
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
