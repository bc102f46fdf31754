import { InvalidRequestError, type JsonObject, PreconditionError } from '@writ/kernel';
import type { Person } from '@writ/rpc';
import type { ApprovalRow } from '../../store/approval/approvals.ts';

/** The answer of an approver. */
export type Answer =
  | { readonly kind: 'approve' }
  /** All arguments, or only the changed arguments if `isPartial` is set. */
  | { readonly kind: 'edit'; readonly json: string; readonly isPartial: boolean }
  | { readonly kind: 'reject' }
  | { readonly kind: 'resolve'; readonly done: boolean; readonly resultJson: string };

/** One DecideApproval request. */
export interface AnswerRequest {
  readonly person: Person;
  readonly approvalId: string;
  readonly requestId: string;
  /** Digest of the whole request. */
  readonly digest: string;
  /** Empty when the request has none. */
  readonly comment: string;
  readonly answer: Answer;
}

/** The result of an answer. */
export interface Answered {
  readonly row: ApprovalRow;
  /** The revised arguments; set when the approval stays pending because a rule of the policy revised the arguments. */
  readonly revisedArguments?: JsonObject;
}

/** The RPC under which answers are recorded for idempotency. */
export const DECIDE_APPROVAL = 'writ.approval.v1.ApprovalService/DecideApproval';

/** The basis of an approval that its agent has withdrawn. */
export const BY_AGENT = 'withdrawn_by_agent';

/**
 * Whether this request already decided the approval.
 * @throws InvalidRequestError REQUEST_ID_REUSED
 */
export function isRepeat(row: ApprovalRow, { person, requestId, digest }: AnswerRequest): boolean {
  if (row.decided_by !== person.subject || row.request_id !== requestId) return false;
  if (row.request_digest === digest) return true;
  throw new InvalidRequestError(
    'REQUEST_ID_REUSED',
    `request_id ${requestId} was already used for a different answer; use a new request_id.`,
    { field: 'request_id' },
  );
}

/** The error for an approval that is not pending: who decided it, and how. */
export function alreadyDecided(row: ApprovalRow): PreconditionError {
  return new PreconditionError(
    'APPROVAL_DECIDED',
    `Approval ${row.approval_id} ${howDecided(row)}.`,
    {
      approval_id: row.approval_id,
      state: row.state,
      decided_by: row.decided_by ?? '',
    },
  );
}

function howDecided({ state, decided_by, decided_at, basis }: ApprovalRow): string {
  const when = decided_at === null ? '' : ` at ${decided_at.toISOString()}`;
  if (state === 'expired') return `expired${when} without an answer`;
  if (state === 'withdrawn')
    return `was withdrawn${when}, ${basis === BY_AGENT ? 'by its agent' : 'when its agent ended'}`;
  return `was ${state} by ${decided_by}${when}`;
}
