import { InvalidRequestError, type JsonObject, PreconditionError } from '@writ/kernel';
import type { Person } from '@writ/rpc';
import type { ApprovalRow } from '../../store/approval/approvals.ts';

/** What a person says. */
export type Answer =
  | { readonly kind: 'approve' }
  | { readonly kind: 'edit'; readonly argumentsJson: string }
  | { readonly kind: 'reject' }
  | { readonly kind: 'resolve'; readonly done: boolean; readonly resultJson: string };

/** An answer with everything that goes on record of it. */
export interface AnswerRequest {
  readonly person: Person;
  readonly approvalId: string;
  readonly requestId: string;
  /** Of all that the request asks for. */
  readonly digest: string;
  /** In the person's words; empty when there are none. */
  readonly comment: string;
  readonly answer: Answer;
}

/** What came of an answer. */
export interface Answered {
  readonly row: ApprovalRow;
  /** Nothing was decided: rules would change the arguments to these. */
  readonly proposal?: JsonObject;
}

/** The name under which requests of this RPC are remembered. */
export const DECIDE_APPROVAL = 'writ.approval.v1.ApprovalService/DecideApproval';

/**
 * Whether this very request decided the approval before.
 * @throws InvalidRequestError REQUEST_ID_REUSED
 */
export function isRepeat(row: ApprovalRow, { person, requestId, digest }: AnswerRequest): boolean {
  if (row.decided_by !== person.subject || row.request_id !== requestId) return false;
  if (row.request_digest === digest) return true;
  throw new InvalidRequestError(
    'REQUEST_ID_REUSED',
    `request_id ${requestId} was used for another answer before; choose a new one.`,
    { field: 'request_id' },
  );
}

/** Tells whoever comes too late who decided, and what. */
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

function howDecided({ state, decided_by, decided_at }: ApprovalRow): string {
  const when = decided_at === null ? '' : ` at ${decided_at.toISOString()}`;
  if (state === 'expired') return `expired${when} without an answer`;
  if (state === 'withdrawn') return `was withdrawn${when}, when its run ended`;
  return `was ${state} by ${decided_by}${when}`;
}
