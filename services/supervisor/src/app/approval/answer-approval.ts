import { InvalidRequestError } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { loadApproval } from '../../store/approval/approvals.ts';
import type { Answer, Answered, AnswerRequest } from './answer-request.ts';
import { decideAction } from './decide-action.ts';
import { resolveOutcome } from './resolve-outcome.ts';

/**
 * Answers an approval of an action, or of the outcome of a call (SV-5, TG-5).
 * @throws NotFoundError APPROVAL_NOT_FOUND; InvalidRequestError ANSWER_MISMATCH; the errors of decideAction and
 *   resolveOutcome
 */
export async function answerApproval(
  context: SupervisorContext,
  request: AnswerRequest,
): Promise<Answered> {
  const { person, approvalId, answer } = request;
  const approval = await loadApproval(context.store.db, person.tenant, approvalId);
  assertFits(approval.kind, answer);
  return approval.kind === 'resolve'
    ? await resolveOutcome(context, request, approval)
    : await decideAction(context, request, approval);
}

function assertFits(kind: 'action' | 'resolve', answer: Answer): void {
  if ((kind === 'resolve') === (answer.kind === 'resolve')) return;
  const sentence =
    kind === 'resolve'
      ? 'This approval is about the outcome of a call; answer it with resolve.'
      : 'This approval is about an action; answer it with approve, approve_with_edits or reject.';
  throw new InvalidRequestError('ANSWER_MISMATCH', sentence, { field: 'answer', kind });
}
