import type { CallContext } from '@writ/rpc';
import { type SupervisorContext, type Tx, transact } from '../../context.ts';
import { findApproval } from '../../store/approval/approvals.ts';
import { loadDecision } from '../../store/review/decisions.ts';
import { admitAgent, callingAgent } from '../agent/admit-agent.ts';
import { assertAlive, subjectOf } from '../review/review-subject.ts';
import { settleWithdrawn, WITHDRAWN } from './settle-action.ts';

/**
 * Withdraws a proposal of the calling agent that waits for a person. The transaction never runs concurrently with the
 * transaction that records the decision of the person. Only one of the two takes effect, so a withdrawn proposal never
 * gets a writ (AP-4, SV-5). A halt does not prevent the withdrawal, because a withdrawn proposal is not executed.
 * @returns whether the proposal is withdrawn; false if it was already decided
 * @throws NotFoundError DECISION_NOT_FOUND, AGENT_NOT_FOUND; PreconditionError RUN_ENDED, STALE_EPOCH
 */
export async function withdrawAction(
  context: SupervisorContext,
  call: CallContext,
  callId: string,
): Promise<boolean> {
  const withdraw = async (tx: Tx): Promise<boolean> => {
    const { trx } = tx;
    const subject = await subjectOf(trx, await admitAgent(trx, call));
    const decision = await loadDecision(trx, { ...subject.key, callId });
    if (decision.settled) return decision.stop_reason === WITHDRAWN;
    await assertAlive(trx, subject);
    const { tenant } = subject.key;
    const approval = await findApproval(trx, tenant, decision.approval_id ?? '');
    if (approval?.state !== 'pending') return false;
    await settleWithdrawn(tx, { approval, decision, subject });
    return true;
  };
  return await transact(context, withdraw, { run: callingAgent(call) });
}
