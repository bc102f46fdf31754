import { setTimeout as delay } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import type { WritClient } from '@writ/client';
import { type Approval, ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import {
  ApproveSchema,
  ApproveWithEditsSchema,
  type DecideApprovalRequest,
  RejectSchema,
  ResolveSchema,
} from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { Run, RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import { ResolvedOutcome } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { isWritError, newId } from '@writ/kernel';
import type { SignalShown } from './answer-signals.ts';
import type { Human, HumanAnswer } from './human.ts';

/** Interval at which an approval is read while a person is asked about it. */
const CLOSED_POLL_MS = 500;

/** The services that a follower calls: `runs` as a caller, `approvals` as the approver. */
export type FollowerClient = Pick<WritClient, 'runs' | 'approvals'>;

/** Callbacks of a follower. */
export interface RunFollower {
  onEvent(event: RunEvent): void;
  /** An approval is pending; called before the answer is awaited. */
  onQuestion(approval: Approval): void;
  /** Called with one sentence when the platform has rejected the answer of the person. */
  onRefusedAnswer(sentence: string): void;
  /** A rule would change the approved arguments; the person is then asked about the changed arguments. */
  onProposal?(argumentsJson: string): void;
  /** The approver gave no answer; the approval stays open for another approver. */
  onUnanswered?(approval: Approval): void;
  /** Time that the person needed, in milliseconds. */
  onAnswered?(milliseconds: number): void;
  /** Sends the next signal to a waiting agent, if any. */
  answer?(runId: string, event: RunEvent, onSignal?: SignalShown): Promise<void>;
  /** Called before `answer` sends a signal. */
  onSignal?: SignalShown;
}

/**
 * Follows a run from its first event to its result, and asks the person about escalated actions.
 *
 * @returns the finished run
 * @throws WritError when a call to the platform fails; a person whose answer is rejected is asked again instead
 */
export async function followRun(
  client: FollowerClient,
  runId: string,
  human: Human,
  follower: RunFollower,
): Promise<Run> {
  for await (const { event } of client.runs.watchRun({ runId })) {
    if (event === undefined) continue;
    follower.onEvent(event);
    await follower.answer?.(runId, event, follower.onSignal);
    if (
      event.entry.case === 'hook' &&
      event.entry.value.type === HookEventType.APPROVAL_REQUESTED
    ) {
      await askUntilDecided(client, event.entry.value.approvalId, human, follower);
    }
  }
  const { run } = await client.runs.getRun({ runId });
  if (run === undefined) throw new Error(`GetRun returned no run for ${runId}.`);
  return run;
}

/** Resolves when an agent of a run waits for a signal, or the run has ended. */
export async function awaitWaiting(client: Pick<WritClient, 'runs'>, runId: string): Promise<void> {
  for await (const { event } of client.runs.watchRun({ runId })) {
    if (event?.entry.case === 'hook' && event.entry.value.waitingFor !== '') return;
  }
}

async function askUntilDecided(
  client: FollowerClient,
  approvalId: string,
  human: Human,
  follower: RunFollower,
): Promise<void> {
  let proposal: string | undefined;
  for (;;) {
    const { approval } = await client.approvals.getApproval({ approvalId });
    if (approval === undefined || approval.state !== ApprovalState.PENDING) return;
    if (proposal !== undefined) propose(approval, proposal);
    follower.onQuestion(approval);
    const asked = performance.now();
    const answer = await answerOrClosed(client, approval, human);
    follower.onAnswered?.(performance.now() - asked);
    if (answer === 'closed') return;
    if (answer === undefined) {
      follower.onUnanswered?.(approval);
      return;
    }
    try {
      const { proposedArgumentsJson } = await client.approvals.decideApproval({
        requestId: newId('req'),
        approvalId,
        answer: answerMessage(withProposal(answer, proposal)),
      });
      if (proposedArgumentsJson === '') return;
      proposal = proposedArgumentsJson;
      follower.onProposal?.(proposal);
    } catch (error) {
      if (!isWritError(error) || !human.isPerson) throw error;
      follower.onRefusedAnswer(error.message);
    }
  }
}

/** The answer of a person; `closed` when the approval was decided, withdrawn or expired while they were asked. */
async function answerOrClosed(
  client: FollowerClient,
  approval: Approval,
  human: Human,
): Promise<HumanAnswer | 'closed' | undefined> {
  const stop = new AbortController();
  if (!human.isPerson) return await human.answer(approval, stop.signal);
  const closed = new AbortController();
  void untilClosed(client, approval, stop.signal).then(
    () => closed.abort(),
    // If polling fails, the person is still asked, and the platform rejects a late decision.
    () => undefined,
  );
  try {
    return await human.answer(approval, closed.signal);
  } catch (error) {
    if (closed.signal.aborted) return 'closed';
    throw error;
  } finally {
    stop.abort();
  }
}

/** Resolves when an approval is no longer pending. It is polled, since a watch shows only later decisions. */
async function untilClosed(
  { approvals }: FollowerClient,
  { approvalId }: Approval,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await delay(CLOSED_POLL_MS, undefined, { signal });
    const { approval } = await approvals.getApproval({ approvalId }, { signal });
    if (approval?.state !== ApprovalState.PENDING) return;
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
    case 'resolve': {
      const { DONE, NOT_DONE } = ResolvedOutcome;
      const { resultJson } = answer;
      const outcome = resultJson === undefined ? NOT_DONE : DONE;
      return {
        case: 'resolve',
        value: create(ResolveSchema, { outcome, resultJson: resultJson ?? '' }),
      };
    }
  }
}

/**
 * Replaces the arguments in the approval with those that the policy proposes, so that the next question shows them.
 */
function propose({ action }: Approval, argumentsJson: string): void {
  const kind = action?.kind;
  if (kind?.case === 'tool' || kind?.case === 'clientTool')
    kind.value.argumentsJson = argumentsJson;
}

/**
 * Returns the answer to send: the approval of a proposal of policy is sent as an edit with exactly the proposed
 * arguments.
 */
function withProposal(answer: HumanAnswer, proposal: string | undefined): HumanAnswer {
  return answer.kind === 'approve' && proposal !== undefined
    ? { kind: 'edit', argumentsJson: proposal }
    : answer;
}
