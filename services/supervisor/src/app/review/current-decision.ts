import type { SupervisorContext } from '../../context.ts';
import { actionFrom, actionName } from '../../domain/result/recorded-action.ts';
import type { HumanAnswer } from '../../domain/result/run-result.ts';
import { type AgentKey, loadAgent } from '../../store/agent/agents.ts';
import { humanAnswerOf, loadApproval } from '../../store/approval/approvals.ts';
import { appendAudit } from '../../store/audit.ts';
import { haltOver } from '../../store/halt/halts.ts';
import {
  callKeyOf,
  type DecisionRow,
  loadDecision,
  saveDecision,
} from '../../store/review/decisions.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { type DecisionMessage, decisionMessage } from '../../wire/decision.ts';
import { type Acting, actingOf, isAlive } from './review-subject.ts';
import { ordersCall, signWrit, type WritDesk, writColumns } from './sign-writ.ts';

/**
 * A decision as it stands now. An approved call gets a fresh writ, for exactly what was approved; each
 * one is recorded (SV-6). Execution stays unique by call_id: for a call that has its receipt the writ
 * opens the gateway's record, which is all that a worker that lost the answer can still get (TG-1).
 */
export async function standingDecision(
  trx: SupervisorTransaction,
  desk: WritDesk,
  acting: Acting,
  row: DecisionRow,
): Promise<DecisionMessage> {
  const human = await humanAnswerTo(trx, row);
  if (!(await mayExecute(trx, acting, row))) return decisionMessage(row, { human });
  const writ = await signWrit(desk, acting, row);
  const columns = writColumns(row, writ);
  await saveDecision(trx, callKeyOf(row), columns);
  await auditWrit(trx, { ...row, ...columns }, desk.clock.now());
  return decisionMessage(row, { human, writ });
}

/** {@link standingDecision} in a transaction of its own. */
export async function decisionNow(
  context: SupervisorContext,
  key: AgentKey,
  callId: string,
): Promise<DecisionMessage> {
  return await context.store.transaction(async (trx) => {
    const acting = await actingOf(trx, await loadAgent(trx, key));
    const row = await loadDecision(trx, { ...key, callId });
    return await standingDecision(trx, context, acting, row);
  });
}

/** A writ that was not signed with its decision: after a person's yes, or again (SV-8). */
async function auditWrit(trx: SupervisorTransaction, row: DecisionRow, at: Date): Promise<void> {
  const action = actionFrom(row.executed_action);
  const facts = {
    decision_id: row.decision_id,
    writ_id: row.last_writ_id ?? undefined,
    writ_number: row.writ_count,
    expire_time: row.last_writ_expires_at?.toISOString(),
    tool: action === undefined ? undefined : actionName(action),
    args_sha256: row.args_sha256 ?? undefined,
    definition_digest: row.definition_digest ?? undefined,
    executed_from: row.executed_from ?? undefined,
    policy_version: row.policy_version,
    approval_id: row.approval_id ?? undefined,
  };
  await appendAudit(trx, { ...callKeyOf(row), kind: 'writ', facts }, at);
}

/** What a person said about a decision; undefined when nobody was asked or nobody has answered. */
async function humanAnswerTo(
  trx: SupervisorTransaction,
  { tenant, approval_id }: DecisionRow,
): Promise<HumanAnswer | undefined> {
  if (approval_id === null) return undefined;
  return humanAnswerOf(await loadApproval(trx, tenant, approval_id));
}

async function mayExecute(
  trx: SupervisorTransaction,
  acting: Acting,
  row: DecisionRow,
): Promise<boolean> {
  if (!ordersCall(row) || !isAlive(acting)) return false;
  return (await haltOver(trx, acting.key)) === undefined;
}
