import { type AgentKey, canonicalJson, derivedId, sha256Hex } from '@writ/kernel';
import { type Facts, factValues } from '@writ/policy';
import type { Tx } from '../../context.ts';
import type { RecordedAction } from '../../domain/result/recorded-action.ts';
import type { HumanAnswer } from '../../domain/result/run-result.ts';
import type { Judgement } from '../../domain/review/judge.ts';
import { type Proposal, proposalDigest } from '../../domain/review/proposal.ts';
import type { ReviewedTool } from '../../domain/review/reviewed-tool.ts';
import type { DecisionRow } from '../../store/review/decisions.ts';
import { appendTimeline } from '../../store/run/timeline.ts';
import { encodeDecision } from '../../wire/timeline.ts';
import { approvalIdOf } from '../approval/open-approval.ts';
import type { ReviewSubject } from './review-subject.ts';

/** The judgement on a proposal, and the other values from which its decision row is created. */
export interface DecisionInput {
  readonly proposal: Proposal;
  readonly judgement: Judgement;
  readonly tool: ReviewedTool | undefined;
  /**
   * The model's text if the proposal is raw text, or the raw value of any other invalid proposal as JSON; undefined
   * otherwise.
   */
  readonly rawText: string | undefined;
  /** Zero for the first composed final answer of the agent, which does not count as a step (SV-1). */
  readonly step: number;
  /** The facts before the action. */
  readonly facts: Facts;
  /** `performance.now()` at the arrival of the request. */
  readonly startedAt: number;
}

/** The columns that are set when an action is approved. */
export type ExecutionColumns = Pick<
  DecisionRow,
  'executed_action' | 'executed_from' | 'definition_digest' | 'args_sha256' | 'run_ended'
>;

/** Returns the row of a decision, without its timeline sequence and its first writ. */
export function decisionRow(
  { context: { policy }, at }: Tx,
  subject: ReviewSubject,
  input: DecisionInput,
  factsAfter: Facts,
): DecisionRow {
  const { key } = subject;
  const { proposal, judgement, tool, rawText, step, facts } = input;
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
    // Set even while an approval is pending, so that the row identifies the reviewed definition.
    definition_digest: definitionDigestOf(action, tool),
    has_effect: hasEffect(action, tool),
    approval_id: next.kind === 'ask' ? approvalIdOf(subject, 'action', callId) : null,
    stop_reason: next.kind === 'stop' ? next.stopReason : null,
    phase: (next.kind === 'stop' && next.phase) || null,
    settled: next.kind !== 'ask',
    writ_count: 0,
    last_writ_id: null,
    last_writ_expires_at: null,
    facts_before: JSON.stringify(factValues(policy, facts)),
    facts_after: JSON.stringify(factValues(policy, factsAfter)),
    decided_at: at,
    latency_us: Math.round((performance.now() - input.startedAt) * 1_000),
  };
}

/** Returns the definition digest from the gateway, or for a client-executed tool the digest that its program sent. */
function definitionDigestOf(
  action: RecordedAction | undefined,
  tool: ReviewedTool | undefined,
): string | null {
  if (action?.kind === 'client_tool') return action.definition_digest || null;
  return tool?.definitionDigest ?? null;
}

/**
 * Whether an action may have side effects. True for a delegation, and for a tool that the gateway does not list; false
 * for a tool that the agent's program executes itself, because its effects cannot be counted without a receipt (AP-5).
 */
function hasEffect(action: RecordedAction | undefined, tool: ReviewedTool | undefined): boolean {
  if (action?.kind === 'tool') return tool?.hasEffect ?? true;
  return action?.kind === 'delegation';
}

/** The columns of an approved action. The digest of a tool's argument bytes binds the writ to them (TG-1). */
export function executionColumns(
  action: RecordedAction,
  from: NonNullable<DecisionRow['executed_from']>,
  tool: ReviewedTool | undefined,
): ExecutionColumns {
  return {
    executed_action: JSON.stringify(action),
    executed_from: from,
    definition_digest: definitionDigestOf(action, tool),
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

/**
 * Whether {@link publishDecision} publishes the decision itself or its later settlement: the answer of a person, the
 * expiry or the withdrawal. The name is part of the id of the timeline entry.
 */
export type DecisionMoment =
  | { readonly name: 'decided' }
  | { readonly name: 'settled'; readonly human: HumanAnswer | undefined };

/** The id of the timeline entry of a decision. */
export function decisionEventId(
  { runId, instance }: AgentKey,
  callId: string,
  moment: DecisionMoment['name'],
): string {
  return derivedId('evt', runId, instance, callId, 'DECISION', moment);
}

/** Appends a decision, without its writ, to the timeline of its run (HK-1). Returns the sequence of the entry. */
export async function publishDecision(
  { trx, at }: Tx,
  { key, ref }: ReviewSubject,
  row: DecisionRow,
  moment: DecisionMoment,
): Promise<number> {
  const human = moment.name === 'settled' ? moment.human : undefined;
  return await appendTimeline(
    trx,
    {
      tenant: key.tenant,
      runId: key.runId,
      eventId: decisionEventId(key, row.call_id, moment.name),
      entry: encodeDecision(row, ref, human),
    },
    at,
  );
}
