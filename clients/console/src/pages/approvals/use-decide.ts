import type { MessageInitShape } from '@bufbuild/protobuf';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { wordsOf } from '@writ/client/display';
import { type Approval, ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import type { DecideApprovalRequestSchema } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import type { ResolvedOutcome } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { useRef } from 'react';
import { newRequestId } from '../../api/ids.ts';
import { useApi } from '../../session/session-provider.tsx';

type Answer = MessageInitShape<typeof DecideApprovalRequestSchema>['answer'];

/**
 * Returns the functions that decide an approval, and the state of the request. The first decision on an approval is
 * final.
 */
export function useDecide({ approvalId }: Approval) {
  const api = useApi();
  const queries = useQueryClient();
  const request = useRef<{ readonly content: string; readonly requestId: string }>(undefined);
  const { mutate, error, isPending, data, reset } = useMutation({
    mutationFn: ({ answer, comment }: { readonly answer: Answer; readonly comment: string }) => {
      const content = JSON.stringify({ approvalId, answer, comment });
      // Repeats an identical decision with the same request id, because the response to the first request may have been
      // lost.
      if (request.current?.content !== content)
        request.current = { content, requestId: newRequestId() };
      const { requestId } = request.current;
      return api.approvals.decideApproval({ requestId, approvalId, answer, comment });
    },
    onSuccess: async ({ approval }) => {
      if (approval !== undefined && approval.state !== ApprovalState.PENDING) {
        notifications.show({ message: `Recorded: ${wordsOf(ApprovalState, approval.state)}.` });
      }
      await queries.invalidateQueries({ queryKey: ['approval', approvalId] });
      await queries.invalidateQueries({ queryKey: ['approvals'] });
    },
  });
  return {
    error,
    isPending,
    reset,
    /** The edited arguments as a rule would revise them; empty if no rule revises them. */
    proposal: data?.proposedArgumentsJson ?? '',
    approve: (comment: string) => mutate({ answer: { case: 'approve', value: {} }, comment }),
    reject: (comment: string) => mutate({ answer: { case: 'reject', value: {} }, comment }),
    edit: (changesJson: string, comment: string) =>
      mutate({ answer: { case: 'approveWithEdits', value: { changesJson } }, comment }),
    resolve: (outcome: ResolvedOutcome, resultJson: string, comment: string) =>
      mutate({ answer: { case: 'resolve', value: { outcome, resultJson } }, comment }),
  };
}
