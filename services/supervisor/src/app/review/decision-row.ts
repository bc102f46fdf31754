import { canonicalJson, derivedId, sha256Hex } from '@writ/kernel';
import { type Facts, factValues } from '@writ/policy';
import type { SupervisorContext } from '../../context.ts';
import type { RecordedAction } from '../../domain/result/recorded-action.ts';
import type { Judgement } from '../../domain/review/judge.ts';
import { type Proposal, proposalDigest } from '../../domain/review/proposal.ts';
import type { ReviewedTool } from '../../domain/review/reviewed-tool.ts';
import type { DecisionRow } from '../../store/review/decisions.ts';
import { approvalIdOf } from '../approval/open-approval.ts';
import type { Acting } from './review-subject.ts';

/** Everything that a decision is recorded from. */
export interface Ruled {
  readonly proposal: Proposal;
  readonly judgement: Judgement;
  readonly tool: ReviewedTool | undefined;
  /** What the model said, where that is to be kept. */
  readonly rawText: string | undefined;
  /** Zero for a final that counts no step. */
  readonly step: number;
  /** Before the action. */
  readonly facts: Facts;
  /** `performance.now()` when the request came. */
  readonly startedAt: number;
}

/** The columns that an action gets once somebody said yes to it. */
export type ExecutionColumns = Pick<
  DecisionRow,
  'executed_action' | 'executed_from' | 'definition_digest' | 'args_sha256' | 'run_ended'
>;

/** A decision's row, before its place in the timeline and its first writ are known. */
export function decisionRow(
  { policy }: Pick<SupervisorContext, 'policy'>,
  acting: Acting,
  ruled: Ruled,
  factsAfter: Facts,
  at: Date,
): DecisionRow {
  const { key } = acting;
  const { proposal, judgement, tool, rawText, step, facts } = ruled;
  const { next, action, revisedAction } = judgement;
  const { callId } = proposal;
  return {
    tenant: key.tenant,
    run_id: key.runId,
    instance: key.instance,
    call_id: callId,
    decision_id: derivedId('dec', key.tenant, key.runId, key.instance, callId),
    sequence: 0,
    proposal_digest: proposalDigest(proposal),
    model_call_id: proposal.modelCallId,
    step,
    composed: proposal.composed,
    partial: proposal.partial,
    verdict: judgement.verdict,
    reason: judgement.reason,
    rule_id: judgement.ruleId,
    risk: judgement.risk,
    policy_version: policy.version,
    raw_text: rawText ?? null,
    action: action === undefined ? null : JSON.stringify(action),
    revised_action: revisedAction === undefined ? null : JSON.stringify(revisedAction),
    ...(next.kind === 'go' ? executionColumns(next.action, next.from, tool) : NOT_EXECUTED),
    // The definition that was reviewed, also while a person thinks about it.
    definition_digest: tool?.definitionDigest ?? null,
    approval_id: next.kind === 'ask' ? approvalIdOf(acting, 'action', callId) : null,
    stop_reason: next.kind === 'stop' ? next.stopReason : null,
    phase: (next.kind === 'stop' && next.phase) || null,
    settled: next.kind !== 'ask',
    writ_count: 0,
    last_writ_id: null,
    last_writ_expires_at: null,
    facts_before: JSON.stringify(factValues(policy, facts)),
    facts_after: JSON.stringify(factValues(policy, factsAfter)),
    decided_at: at,
    latency_us: Math.round((performance.now() - ruled.startedAt) * 1_000),
  };
}

/** What is signed and carried out: a tool's arguments are bound by the digest of their bytes (TG-1). */
export function executionColumns(
  action: RecordedAction,
  from: NonNullable<DecisionRow['executed_from']>,
  tool: ReviewedTool | undefined,
): ExecutionColumns {
  return {
    executed_action: JSON.stringify(action),
    executed_from: from,
    definition_digest: tool?.definitionDigest ?? null,
    args_sha256: action.kind === 'tool' ? sha256Hex(canonicalJson(action.args)) : null,
    run_ended: action.kind === 'final',
  };
}

const NOT_EXECUTED: ExecutionColumns = {
  executed_action: null,
  executed_from: null,
  definition_digest: null,
  args_sha256: null,
  run_ended: false,
};
