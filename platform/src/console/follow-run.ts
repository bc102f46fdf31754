import { create } from '@bufbuild/protobuf';
import type { WritClient } from '@writ/client';
import type { Approval } from '@writ/contracts/writ/approval/v1/approval_pb';
import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import {
  ApproveSchema,
  ApproveWithEditsSchema,
  type DecideApprovalRequest,
  RejectSchema,
} from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { Run, RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import { isWritError, newId } from '@writ/kernel';
import type { Human, HumanAnswer } from './human.ts';

/** Callbacks of a follower. */
export interface RunFollower {
  onEvent(event: RunEvent): void;
  /** An approval is pending; called before the answer is awaited. */
  onQuestion(approval: Approval): void;
  /** The platform rejected the answer of the person, in one sentence. */
  onRefusedAnswer(sentence: string): void;
  /** Time that the person needed, in milliseconds. */
  onAnswered?(milliseconds: number): void;
  /** Sends the next signal to a waiting agent, if any. */
  answer?(runId: string, event: RunEvent): Promise<void>;
}

/**
 * Follows a run from its first event to its result, and asks the person about escalated actions.
 *
 * @returns the finished run
 * @throws WritError when the platform rejects an answer that cannot be corrected
 */
export async function followRun(
  client: WritClient,
  runId: string,
  human: Human,
  follower: RunFollower,
): Promise<Run> {
  for await (const { event } of client.runs.watchRun({ runId })) {
    if (event === undefined) continue;
    follower.onEvent(event);
    await follower.answer?.(runId, event);
    if (
      event.entry.case === 'hook' &&
      event.entry.value.type === HookEventType.APPROVAL_REQUESTED
    ) {
      await settle(client, event.entry.value.approvalId, human, follower);
    }
  }
  const { run } = await client.runs.getRun({ runId });
  if (run === undefined) throw new Error(`GetRun returned no run for ${runId}.`);
  return run;
}

/** Resolves when an agent of a run waits for a signal, or the run has ended. */
export async function awaitWaiting(client: WritClient, runId: string): Promise<void> {
  for await (const { event } of client.runs.watchRun({ runId })) {
    if (event?.entry.case === 'hook' && event.entry.value.waitingFor !== '') return;
  }
}

async function settle(
  client: WritClient,
  approvalId: string,
  human: Human,
  follower: RunFollower,
): Promise<void> {
  for (;;) {
    const { approval } = await client.approvals.getApproval({ approvalId });
    if (approval === undefined || approval.state !== ApprovalState.PENDING) return;
    follower.onQuestion(approval);
    const asked = performance.now();
    const answer = await human.answer(approval);
    follower.onAnswered?.(performance.now() - asked);
    try {
      const { proposedArgumentsJson } = await client.approvals.decideApproval({
        requestId: newId('req'),
        approvalId,
        answer: answerMessage(answer),
      });
      if (proposedArgumentsJson === '') return;
      human = accepting(proposedArgumentsJson);
    } catch (error) {
      if (!isWritError(error) || !human.canCorrect) throw error;
      follower.onRefusedAnswer(error.message);
    }
  }
}

function answerMessage(answer: HumanAnswer): DecideApprovalRequest['answer'] {
  switch (answer.kind) {
    case 'approve':
      return { case: 'approve', value: create(ApproveSchema) };
    case 'edit':
      return {
        case: 'approveWithEdits',
        value: create(ApproveWithEditsSchema, { argumentsJson: answer.argumentsJson }),
      };
    case 'reject':
      return { case: 'reject', value: create(RejectSchema) };
  }
}

/** Accepts the revision of an edit by a rule. */
function accepting(argumentsJson: string): Human {
  return {
    description: 'as policy revised it',
    canCorrect: false,
    answer: async () => ({ kind: 'edit', argumentsJson }),
  };
}
