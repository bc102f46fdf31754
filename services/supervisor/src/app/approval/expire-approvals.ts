import { type SupervisorContext, type Tx, transact } from '../../context.ts';
import { actionFrom, actionName } from '../../domain/result/recorded-action.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import {
  type ApprovalRow,
  hasExpired,
  loadApproval,
  saveApproval,
} from '../../store/approval/approvals.ts';
import { type DueApproval, expiredApprovals } from '../../store/approval/expired-approvals.ts';
import { unresumedHalt } from '../../store/halt/lifted-halts.ts';
import { callKeyOf, loadDecision, saveDecision } from '../../store/review/decisions.ts';
import { isAlive, subjectOf } from '../review/review-subject.ts';
import { publishApproval } from './publish-approval.ts';
import { type PendingApproval, settleNotApproved } from './settle-action.ts';

const PAGE_SIZE = 100;

/**
 * Sweep: rejects the actions of expired approvals (SV-5). If the expired approval asks for the unknown outcome of a
 * call, the decision on this call gets the stop reason `outcome_unknown:<tool>` (TG-5).
 */
export async function expireApprovals(context: SupervisorContext): Promise<void> {
  const { store, clock, telemetry } = context;
  const now = clock.now();
  let page: readonly DueApproval[];
  let last: DueApproval | undefined;
  // Reads all pages even after an error, because an approval that cannot be settled must not block later approvals.
  do {
    page = await expiredApprovals(store.db, now, PAGE_SIZE, last);
    for (const due of page) {
      try {
        await expireOne(context, due);
      } catch (error) {
        const { tenant, run_id, approval_id } = due;
        const fields = { err: error, tenant, run_id, approval_id };
        telemetry.log.error(fields, 'failed to expire an approval');
      }
    }
    last = page.at(-1);
  } while (page.length === PAGE_SIZE);
}

async function expireOne(context: SupervisorContext, due: DueApproval): Promise<void> {
  await transact(
    context,
    async (tx) => {
      const approval = await loadApproval(tx.trx, due.tenant, due.approval_id);
      // The lift of a halt may have extended the approval since it was selected.
      if (approval.state === 'pending' && hasExpired(approval, tx.at)) await expire(tx, approval);
    },
    { run: { tenant: due.tenant, runId: due.run_id }, background: true },
  );
}

async function expire(tx: Tx, approval: ApprovalRow): Promise<void> {
  const { trx } = tx;
  const decision = await loadDecision(trx, callKeyOf(approval));
  const { tenant, run_id: runId, instance } = approval;
  const subject = await subjectOf(trx, await loadAgent(trx, { tenant, runId, instance }));
  // The end of the agent or its run withdraws the approval.
  if (!isAlive(subject)) return;
  // The resume of the run extends the approval by the halted time.
  if ((await unresumedHalt(trx, subject.key)) !== undefined) return;
  const pending: PendingApproval = { approval, decision, subject };
  if (approval.kind === 'action') await settleNotApproved(tx, pending, undefined);
  else await leaveUnknown(tx, pending);
}

async function leaveUnknown(
  tx: Tx,
  { approval, decision, subject }: PendingApproval,
): Promise<void> {
  const { trx, at } = tx;
  const action = actionFrom(approval.action);
  const tool = action === undefined ? approval.tool : actionName(action);
  const changes = { state: 'expired', approved: false, decided_at: at } as const;
  await saveApproval(trx, approval, changes);
  await saveDecision(trx, callKeyOf(decision), {
    stop_reason: `outcome_unknown:${tool}`,
    phase: 'execution',
  });
  await publishApproval(tx, subject, { ...approval, ...changes });
}
