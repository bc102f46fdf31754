import { applyPending } from '@writ/policy';
import type { SupervisorContext } from '../../context.ts';
import { actionFacts } from '../../domain/audit/audit-facts.ts';
import { factCallId } from '../../domain/facts/settle-receipt.ts';
import type { NextStep } from '../../domain/review/judge.ts';
import { recordEnding } from '../../store/agent/endings.ts';
import { suspendAgent } from '../../store/agent/suspension.ts';
import { appendAudit } from '../../store/audit.ts';
import { type DecisionRow, insertDecision } from '../../store/review/decisions.ts';
import { saveFacts } from '../../store/review/facts.ts';
import { countApprovedCall } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { type DecisionMessage, decisionMessage } from '../../wire/decision.ts';
import { openApproval } from '../approval/open-approval.ts';
import { decisionRow, type Ruled } from './decision-row.ts';
import { tellDecision } from './publish-decision.ts';
import type { Acting } from './review-subject.ts';
import { ordersCall, signWrit, writColumns } from './sign-writ.ts';

/**
 * Puts a decision on record with everything that follows from it, in the one transaction of the
 * review: pending effect, writ, timeline, audit, and the approval or the ending (SV-1, SV-3, SV-8).
 */
export async function recordDecision(
  trx: SupervisorTransaction,
  context: SupervisorContext,
  acting: Acting,
  ruled: Ruled,
  at: Date,
): Promise<DecisionMessage> {
  const { proposal, judgement, facts } = ruled;
  const { next } = judgement;
  const key = { ...acting.key, callId: proposal.callId };
  const after =
    next.kind === 'go' ? applyPending(context.policy, facts, factCallId(key), next.action) : facts;
  if (after !== facts) await saveFacts(trx, key, after);

  const draft = decisionRow(context, acting, ruled, after, at);
  // Before anything is told: a decision that cannot be ordered is none.
  const writ = ordersCall(draft) ? await signWrit(context, acting, draft) : undefined;
  const signed: DecisionRow = { ...draft, ...(writ && writColumns(draft, writ)) };
  const sequence = await tellDecision(trx, acting, signed, 'decided', at);
  const row: DecisionRow = { ...signed, sequence };
  await insertDecision(trx, row);
  context.events.decided(row, judgement.action?.kind ?? 'invalid');
  if (ordersCall(row)) await countApprovedCall(trx, key);
  await auditDecision(trx, row, ruled, at);
  await follow(trx, context, acting, ruled, next, at);
  return decisionMessage(row, { writ });
}

/** What an approved final and an escalation bring about beside the decision. */
async function follow(
  trx: SupervisorTransaction,
  context: SupervisorContext,
  acting: Acting,
  { proposal, step }: Ruled,
  next: NextStep,
  at: Date,
): Promise<void> {
  const { callId, partial } = proposal;
  if (next.kind === 'go' && next.action.kind === 'final') {
    const stopReason = partial ? 'paused' : 'success';
    const { answer } = next.action;
    await recordEnding(trx, { ...acting.key, stopReason, callId, answer }, at);
  }
  if (next.kind === 'ask') {
    const policyVersion = context.policy.version;
    const question = { ...next, kind: 'action', callId, step, policyVersion } as const;
    await openApproval(trx, context, acting, question, at);
    await suspendAgent(trx, acting.key, at);
  }
}

async function auditDecision(
  trx: SupervisorTransaction,
  row: DecisionRow,
  { judgement }: Ruled,
  at: Date,
): Promise<void> {
  const { next, action, passes } = judgement;
  await appendAudit(
    trx,
    {
      tenant: row.tenant,
      kind: 'decision',
      runId: row.run_id,
      instance: row.instance,
      callId: row.call_id,
      facts: {
        decision_id: row.decision_id,
        proposal_digest: row.proposal_digest,
        model_call_id: row.model_call_id,
        step: row.step,
        verdict: row.verdict,
        reason: row.reason,
        rule: row.rule_id,
        risk: row.risk,
        passes: passes.map((pass) => ({ ...pass })),
        policy_version: row.policy_version,
        ...actionFacts('action', action),
        ...(next.kind === 'go' && actionFacts('executed', next.action)),
        executed_from: row.executed_from ?? undefined,
        args_sha256: row.args_sha256 ?? undefined,
        definition_digest: row.definition_digest ?? undefined,
        writ_id: row.last_writ_id ?? undefined,
        approval_id: row.approval_id ?? undefined,
        stop_reason: row.stop_reason ?? undefined,
      },
    },
    at,
  );
}
