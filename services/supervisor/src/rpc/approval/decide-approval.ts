import type {
  ApprovalService,
  ApproveWithEdits,
  DecideApprovalRequest,
} from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { ResolvedOutcome } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { canonicalDigest, canonicalJson, InvalidRequestError } from '@writ/kernel';
import { type Handler, requirePerson } from '@writ/rpc';
import { answerApproval } from '../../app/approval/answer-approval.ts';
import type { Answer } from '../../app/approval/answer-request.ts';
import { presentApproval } from '../../app/approval/present-approval.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * DecideApproval: answers an approval with the identity of the caller's credentials. The first answer is final; the
 * transaction applies the current policy and caps again (SV-5).
 */
export function decideApproval(
  context: SupervisorContext,
): Handler<typeof ApprovalService.method.decideApproval> {
  return async (request, call) => {
    const person = requirePerson(call);
    const answer = answerFrom(request);
    const { requestId, approvalId, comment } = request;
    const { row, revisedArguments } = await answerApproval(context, {
      person,
      approvalId,
      requestId,
      digest: canonicalDigest({ approvalId, comment, answer: { ...answer } }),
      comment: comment.trim(),
      answer,
    });
    return {
      approval: await presentApproval(context, row, person),
      proposedArgumentsJson: revisedArguments === undefined ? '' : canonicalJson(revisedArguments),
    };
  };
}

function answerFrom({ answer }: DecideApprovalRequest): Answer {
  switch (answer.case) {
    case 'approve':
      return { kind: 'approve' };
    case 'approveWithEdits':
      return editFrom(answer.value);
    case 'reject':
      return { kind: 'reject' };
    case 'resolve': {
      const { outcome, resultJson } = answer.value;
      return { kind: 'resolve', done: outcome === ResolvedOutcome.DONE, resultJson };
    }
    case undefined:
      throw new InvalidRequestError('FIELD_REQUIRED', 'answer is required.', { field: 'answer' });
  }
}

function editFrom({ argumentsJson, changesJson }: ApproveWithEdits): Answer {
  if ((argumentsJson === '') !== (changesJson === '')) {
    return { kind: 'edit', json: argumentsJson || changesJson, isPartial: changesJson !== '' };
  }
  throw new InvalidRequestError(
    'INVALID_ARGUMENTS',
    'approve_with_edits requires either arguments_json or changes_json.',
    { field: 'approve_with_edits' },
  );
}
