import type { AgentKey } from '@writ/kernel';
import type { CallContext } from '@writ/rpc';
import { type SupervisorContext, type Tx, transact } from '../../context.ts';
import { actionFrom, actionName } from '../../domain/result/recorded-action.ts';
import type { HumanAnswer } from '../../domain/result/run-result.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import { humanAnswerOf, loadApproval } from '../../store/approval/approvals.ts';
import { appendAudit } from '../../store/audit/append-audit.ts';
import { haltCovering } from '../../store/halt/halts.ts';
import {
  callKeyOf,
  type DecisionRow,
  loadDecision,
  saveDecision,
} from '../../store/review/decisions.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { type DecisionMessage, decisionMessage } from '../../wire/decision.ts';
import { admitAgent, callingAgent } from '../agent/admit-agent.ts';
import {
  assertHoldsSlot,
  assertMayAct,
  isAlive,
  type ReviewSubject,
  subjectOf,
} from './review-subject.ts';
import { approvesCall, signWrit, writColumns } from './sign-writ.ts';

/**
 * Returns the current state of a decision, with a new writ if the decision approves a tool call and the agent has not
 * ended and is not halted; each writ is audited (SV-6). The gateway executes a call_id once: for a call that has a
 * receipt, the writ only lets a worker read a recorded result that it has lost (TG-1).
 */
export async function currentDecision(
  tx: Tx,
  subject: ReviewSubject,
  row: DecisionRow,
): Promise<DecisionMessage> {
  const human = await humanAnswerTo(tx.trx, row);
  if (!(await mayExecute(tx.trx, subject, row))) return decisionMessage(row, { human });
  const writ = await signWrit(tx, subject, row);
  const columns = writColumns(row, writ);
  await saveDecision(tx.trx, callKeyOf(row), columns);
  await auditWrit(tx, { ...row, ...columns });
  return decisionMessage(row, { human, writ });
}

/**
 * Returns the {@link currentDecision} of the calling agent, in a separate transaction.
 * @throws NotFoundError DECISION_NOT_FOUND; the errors of admitAgent, assertMayAct and assertHoldsSlot
 */
export async function readOwnDecision(
  context: SupervisorContext,
  call: CallContext,
  callId: string,
): Promise<DecisionMessage> {
  const read = async (tx: Tx): Promise<DecisionMessage> => {
    const subject = await subjectOf(tx.trx, await admitAgent(tx.trx, call));
    await assertMayAct(tx.trx, subject);
    await assertHoldsSlot(tx, subject, call);
    return await currentDecision(
      tx,
      subject,
      await loadDecision(tx.trx, { ...subject.key, callId }),
    );
  };
  return await transact(context, read, { run: callingAgent(call) });
}

/**
 * Returns the {@link currentDecision}, in a separate transaction.
 * @param isRepeat whether the caller has already tried to send the decision: if a writ was signed before, no other writ
 *   is signed, so that failed attempts add no audit records; the worker gets a new writ from GetDecision
 */
export async function readCurrentDecision(
  context: SupervisorContext,
  key: AgentKey,
  callId: string,
  { isRepeat }: { readonly isRepeat: boolean },
): Promise<DecisionMessage> {
  const read = async (tx: Tx): Promise<DecisionMessage> => {
    const row = await loadDecision(tx.trx, { ...key, callId });
    if (isRepeat && row.writ_count > 0) {
      return decisionMessage(row, { human: await humanAnswerTo(tx.trx, row) });
    }
    return await currentDecision(tx, await subjectOf(tx.trx, await loadAgent(tx.trx, key)), row);
  };
  return await transact(context, read, { run: key });
}

/** Audits a writ that was not signed together with its decision: after an approval, or for a repeat (SV-8). */
async function auditWrit({ trx, at }: Tx, row: DecisionRow): Promise<void> {
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

/** The answer of the approver; undefined without an approval or an answer. */
async function humanAnswerTo(
  trx: SupervisorTransaction,
  { tenant, approval_id }: DecisionRow,
): Promise<HumanAnswer | undefined> {
  if (approval_id === null) return undefined;
  return humanAnswerOf(await loadApproval(trx, tenant, approval_id));
}

async function mayExecute(
  trx: SupervisorTransaction,
  subject: ReviewSubject,
  row: DecisionRow,
): Promise<boolean> {
  if (!approvesCall(row) || !isAlive(subject)) return false;
  return (await haltCovering(trx, subject.key)) === undefined;
}
