import { pinned, type SupervisorContext } from '../../context.ts';
import { actionFrom, actionName } from '../../domain/result/recorded-action.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import {
  type ApprovalRow,
  type DueApproval,
  expiredApprovals,
  loadApproval,
  saveApproval,
} from '../../store/approval/approvals.ts';
import { haltOver } from '../../store/halt/halts.ts';
import { callKeyOf, loadDecision, saveDecision } from '../../store/review/decisions.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { actingOf, isAlive } from '../review/review-subject.ts';
import { announceAnswer } from './record-answer.ts';
import { type Asked, settleNo } from './settle-action.ts';

const MOST_AT_ONCE = 100;

/**
 * Takes the silence of those who were asked for a no, once the time is over (SV-5); a call that
 * nobody could tell of stops its run with `outcome_unknown:<tool>` (TG-5). Called every now and then.
 */
export async function expireApprovals(context: SupervisorContext): Promise<void> {
  const { store, clock } = context;
  const now = clock.now();
  let page: readonly DueApproval[];
  let last: DueApproval | undefined;
  // To the end of the list: what cannot be settled yet must not stand before what can.
  do {
    page = await expiredApprovals(store.db, now, MOST_AT_ONCE, last);
    for (const due of page) await expireOne(context, due);
    last = page.at(-1);
  } while (page.length === MOST_AT_ONCE);
}

async function expireOne(context: SupervisorContext, due: DueApproval): Promise<void> {
  const { store, clock } = context;
  await store.transaction(
    async (trx) => {
      const approval = await loadApproval(trx, due.tenant, due.approval_id);
      if (approval.state === 'pending') await expire(trx, pinned(context), approval, clock.now());
    },
    { background: true },
  );
}

async function expire(
  trx: SupervisorTransaction,
  context: SupervisorContext,
  approval: ApprovalRow,
  at: Date,
): Promise<void> {
  const decision = await loadDecision(trx, callKeyOf(approval));
  const { tenant, run_id: runId, instance } = approval;
  const acting = await actingOf(trx, await loadAgent(trx, { tenant, runId, instance }));
  // The end of its run withdraws it.
  if (!isAlive(acting)) return;
  // Halted since it was read: nobody may answer now, and the halt's end gives back the time.
  if ((await haltOver(trx, acting.key)) !== undefined) return;
  const asked: Asked = { approval, decision, acting };
  if (approval.kind === 'action') await settleNo(trx, context, asked, undefined, at);
  else await leaveUnknown(trx, context, asked, at);
}

async function leaveUnknown(
  trx: SupervisorTransaction,
  context: SupervisorContext,
  { approval, decision, acting }: Asked,
  at: Date,
): Promise<void> {
  const action = actionFrom(approval.action);
  const tool = action === undefined ? approval.tool : actionName(action);
  const changes = { state: 'expired', approved: false, decided_at: at } as const;
  await saveApproval(trx, approval, changes);
  await saveDecision(trx, callKeyOf(decision), {
    stop_reason: `outcome_unknown:${tool}`,
    phase: 'execution',
  });
  const settled = { ...approval, ...changes };
  await announceAnswer(trx, context, acting, settled, context.policy.version, at);
}
