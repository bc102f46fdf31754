import { applyPending } from '@writ/policy';
import type { Tx } from '../../context.ts';
import { actionFacts } from '../../domain/audit/audit-facts.ts';
import { factCallId } from '../../domain/facts/settle-receipt.ts';
import { recordEnding } from '../../store/agent/endings.ts';
import { suspendAgent } from '../../store/agent/suspension.ts';
import { appendAudit } from '../../store/audit/append-audit.ts';
import { type DecisionRow, insertDecision } from '../../store/review/decisions.ts';
import { saveFacts } from '../../store/review/facts.ts';
import { countApprovedCall } from '../../store/run/runs.ts';
import { type DecisionMessage, decisionMessage } from '../../wire/decision.ts';
import { openApproval } from '../approval/open-approval.ts';
import { type DecisionInput, decisionRow, publishDecision } from './decision-row.ts';
import type { ReviewSubject } from './review-subject.ts';
import { approvesCall, signWrit, writColumns } from './sign-writ.ts';

/**
 * Records a decision with all of its effects in the transaction of the review: the facts that count an approved call,
 * the writ, the timeline entry, the audit record, and the approval or the end of the agent (SV-1, SV-3, SV-8).
 */
export async function recordDecision(
  tx: Tx,
  subject: ReviewSubject,
  input: DecisionInput,
): Promise<DecisionMessage> {
  const { trx, context } = tx;
  const { proposal, judgement, facts } = input;
  const { next } = judgement;
  const key = { ...subject.key, callId: proposal.callId };
  const after =
    next.kind === 'go' ? applyPending(context.policy, facts, factCallId(key), next.action) : facts;
  if (after !== facts) await saveFacts(trx, key, after);

  const draft = decisionRow(tx, subject, input, after);
  // The writ is signed in the transaction, so that a decision is not recorded if its writ cannot be signed.
  const writ = approvesCall(draft) ? await signWrit(tx, subject, draft) : undefined;
  const signed: DecisionRow = { ...draft, ...(writ && writColumns(draft, writ)) };
  const sequence = await publishDecision(tx, subject, signed, { name: 'decided' });
  const row: DecisionRow = { ...signed, sequence };
  await insertDecision(trx, row);
  context.events.decided(trx, row, judgement.action?.kind ?? 'invalid');
  if (approvesCall(row)) await countApprovedCall(trx, key);
  await auditDecision(tx, row, input);
  await applyDecision(tx, subject, input);
  return decisionMessage(row, { writ });
}

/** Ends the agent after an approved final answer; after an escalation, opens the approval and suspends the agent. */
async function applyDecision(
  tx: Tx,
  subject: ReviewSubject,
  { proposal, judgement: { next }, step }: DecisionInput,
): Promise<void> {
  const { trx, at, context } = tx;
  const { callId, partial } = proposal;
  if (next.kind === 'go' && next.action.kind === 'final') {
    const stopReason = partial ? 'paused' : 'success';
    const { answer } = next.action;
    await recordEnding(trx, { ...subject.key, stopReason, callId, answer }, at);
  }
  if (next.kind === 'ask') {
    const policyVersion = context.policy.version;
    await openApproval(tx, subject, { ...next, kind: 'action', callId, step, policyVersion });
    await suspendAgent(trx, subject.key, at);
  }
}

async function auditDecision(
  { trx, at }: Tx,
  row: DecisionRow,
  { judgement }: DecisionInput,
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
