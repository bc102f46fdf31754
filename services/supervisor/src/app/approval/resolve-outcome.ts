import { readReceipt } from '@writ/identity';
import { derivedId, InternalError } from '@writ/kernel';
import { type SupervisorContext, type Tx, transact } from '../../context.ts';
import { assertFourEyes } from '../../domain/approval/four-eyes.ts';
import { isPurged, loadAgent } from '../../store/agent/agents.ts';
import { type ApprovalRow, loadApproval, saveApproval } from '../../store/approval/approvals.ts';
import { assertNotHalted } from '../../store/halt/halts.ts';
import { isRecorded, rememberRequest, requestsOf } from '../../store/requests.ts';
import { callKeyOf } from '../../store/review/decisions.ts';
import { loadRun } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { receiptFrom } from '../../wire/receipt.ts';
import { recordReceipt } from '../review/record-receipt.ts';
import {
  type Answered,
  type AnswerRequest,
  alreadyDecided,
  DECIDE_APPROVAL,
  isRepeat,
} from './answer-request.ts';

/**
 * Records the outcome of a call that a person determined: the gateway stores it once, and its new receipt settles the
 * approval (TG-5).
 * @throws PreconditionError APPROVAL_DECIDED, HALTED; PermissionDeniedError FOUR_EYES_REQUIRED; InvalidRequestError
 *   REQUEST_ID_REUSED; errors of the gateway
 */
export async function resolveOutcome(
  context: SupervisorContext,
  request: AnswerRequest,
  approval: ApprovalRow,
): Promise<Answered> {
  const { person, approvalId, requestId, digest, comment, answer } = request;
  if (isRepeat(approval, request)) return { row: approval };
  if (answer.kind !== 'resolve') throw alreadyDecided(approval);
  const isPending = approval.state === 'pending';
  // After a crash, the receipt may have settled the approval before this request was completed; the receipt contains
  // the person but not the request id.
  const isTheirs = approval.decided_by === person.subject && approval.request_id === null;
  if (!isPending && !(isTheirs && (approval.approved ?? false) === answer.done)) {
    throw alreadyDecided(approval);
  }
  const { tenant, subject } = person;
  const { run_created_by: runStartedBy, tool } = approval;
  const decider = { subject, runStartedBy, tool };
  assertFourEyes(context.policy, decider, context.config);
  if (isPending) await assertNotHalted(context.store.db, callKeyOf(approval));
  const asked = { tenant, subject, method: DECIDE_APPROVAL, requestId, digest };
  // The gateway stores the outcome permanently, so a reused request_id is rejected before that.
  await isRecorded(context.store.db, asked);
  const token = await context.peers.toolGateway.resolveOutcome({
    // The id is the same if the same person repeats a request whose response was lost.
    requestId: derivedId('req', approvalId, subject, requestId),
    call: callKeyOf(approval),
    done: answer.done,
    resultJson: answer.resultJson,
    resolvedBy: subject,
    comment,
  });
  const receipt = receiptFrom(await readReceipt(context.verifier, token));
  const record = async (tx: Tx): Promise<ApprovalRow> => {
    const { trx, at } = tx;
    if ((await recordReceipt(tx, receipt)) === 'mismatch') {
      throw new InternalError('RECEIPT_MISMATCH', `Receipt ${receipt.id} belongs to another call.`);
    }
    const settled = await loadApproval(trx, tenant, approvalId);
    // The resolution of another person may have reached the gateway first; the gateway keeps the first resolution.
    if (settled.decided_by !== subject || settled.request_id !== null) return settled;
    const own = {
      request_id: requestId,
      request_digest: digest,
      comment: (await isContentPurged(trx, settled)) ? null : comment,
    };
    await rememberRequest(trx, asked, at);
    await saveApproval(trx, settled, own);
    return { ...settled, ...own };
  };
  const row = await transact(context, record, {
    runs: [callKeyOf(approval), receipt],
    resource: requestsOf(person),
  });
  if (isRepeat(row, request)) return { row };
  throw alreadyDecided(row);
}

/** Whether the content of the run or of the agent was deleted, so that a comment must not be stored (SUP-4). */
async function isContentPurged(
  trx: SupervisorTransaction,
  approval: ApprovalRow,
): Promise<boolean> {
  const key = callKeyOf(approval);
  const run = await loadRun(trx, key);
  return run.purged_at !== null || isPurged(await loadAgent(trx, key));
}
