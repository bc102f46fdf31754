import { checkArguments } from '@writ/kernel';
import { type ReviewInput, ruleContext, subjectOf } from './context.ts';
import { countsOf } from './fact-counts.ts';
import { mismatch } from './match.ts';
import { adjust } from './revise.ts';
import type { Policy, ProposedAction, Rule, Verdict } from './types.ts';
import { resultFieldsFor } from './updates.ts';

/** How a rule that was looked at fared; what each of them says is for people (`writ policy explain`). */
export interface RuleTrace {
  readonly ruleId: string;
  /** Line of the rule in the document. */
  readonly line: number;
  readonly outcome: 'no_match' | 'condition_false' | 'escalation_skipped' | 'failed' | 'decided';
  /** Such as `tool is send_refund_email`; names and conditions, never argument values. */
  readonly detail: string;
}

/** What one pass over the rules says (SV-3). */
export interface Decision {
  readonly verdict: Verdict;
  readonly reason: string;
  /** Undefined when no rule matched. */
  readonly ruleId: string | undefined;
  /** The rule's risk or the tool's, whichever is higher; 0 to 100. */
  readonly risk: number;
  readonly policyVersion: string;
  /** Only of `revise`: the action to use instead, which is to be reviewed in its turn (SV-10). */
  readonly revisedAction: ProposedAction | undefined;
  /** Only of `approve`: what the action counts for at once, by cap. */
  readonly counts: Readonly<Record<string, number>>;
  /** Dotted result paths that the receipt must bring back. */
  readonly resultFields: readonly string[];
  /** The rules looked at, in order; the last one decided, if any did. */
  readonly why: readonly RuleTrace[];
}

type Ruling = Pick<Decision, 'verdict' | 'reason'> &
  Partial<Pick<Decision, 'revisedAction' | 'counts'>>;

/**
 * One pass over the ordered rules; the first that matches decides (SV-3). No match is a block
 * (`no_rule_matched`). Whatever cannot be evaluated is a block too (SYS-4): `policy_error:<rule>`,
 * `policy_error:facts.<fact>` for a count, `invalid_revision:<rule>` for a revision that the
 * tool's schema refuses. An approval at or above `approvalRequiredRisk` becomes an escalation,
 * `risk_requires_approval`.
 */
export function review(policy: Policy, input: ReviewInput): Decision {
  const subject = subjectOf(input);
  const context = ruleContext(policy, input);
  const why: RuleTrace[] = [];
  const finish = (ruling: Ruling, rule?: Rule): Decision => ({
    revisedAction: undefined,
    counts: {},
    ...ruling,
    ruleId: rule?.id,
    risk: Math.max(rule?.risk ?? 0, toolRisk(input)),
    policyVersion: policy.version,
    resultFields: subject.tool === '' ? [] : resultFieldsFor(policy, subject.tool),
    why,
  });
  for (const rule of policy.rules) {
    const trace = (outcome: RuleTrace['outcome'], detail: string) =>
      why.push({ ruleId: rule.id, line: rule.line, outcome, detail });
    const differs = mismatch(rule.match, subject);
    if (differs !== undefined) {
      trace('no_match', differs);
      continue;
    }
    if (rule.decide === 'escalate' && input.skipEscalation === true) {
      trace('escalation_skipped', 'a person has approved');
      continue;
    }
    const holds = conditionHolds(rule, context);
    if (holds === undefined) {
      trace('failed', `cannot be evaluated: ${rule.when?.source}`);
      return finish({ verdict: 'block', reason: `policy_error:${rule.id}` }, rule);
    }
    if (!holds) {
      trace('condition_false', `not true: ${rule.when?.source}`);
      continue;
    }
    trace('decided', rule.when === undefined ? 'no condition' : `true: ${rule.when.source}`);
    return finish(ruleOn(policy, rule, input, context), rule);
  }
  return finish({ verdict: 'block', reason: 'no_rule_matched' });
}

/** Undefined when the condition cannot be evaluated, or gives neither true nor false. */
function conditionHolds(rule: Rule, context: Readonly<Record<string, unknown>>) {
  if (rule.when === undefined) return true;
  try {
    const value = rule.when.evaluate(context);
    return typeof value === 'boolean' ? value : undefined;
  } catch {
    // An argument that is missing or of another type than the rule expects; the caller blocks.
    return undefined;
  }
}

function ruleOn(
  policy: Policy,
  rule: Rule,
  input: ReviewInput,
  context: Readonly<Record<string, unknown>>,
): Ruling {
  const reason = fillReason(rule.reason, input);
  if (rule.decide === 'revise') return revision(rule, reason, input, context);
  if (rule.decide !== 'approve') return { verdict: rule.decide, reason };
  const risk = Math.max(rule.risk, toolRisk(input));
  const limit = input.approvalRequiredRisk;
  if (limit !== undefined && risk >= limit && input.skipEscalation !== true) {
    return { verdict: 'escalate', reason: 'risk_requires_approval' };
  }
  return approval(policy, reason, input.action);
}

function approval(policy: Policy, reason: string, action: ProposedAction): Ruling {
  const { counts, failed } = countsOf(policy, action);
  if (failed === undefined) return { verdict: 'approve', reason, counts };
  return { verdict: 'block', reason: `policy_error:facts.${failed}` };
}

function revision(
  rule: Rule,
  reason: string,
  { action, contractOf }: ReviewInput,
  context: Readonly<Record<string, unknown>>,
): Ruling {
  const args = adjust(rule.adjustments, action.args ?? {}, context);
  if (args === undefined) return { verdict: 'block', reason: `policy_error:${rule.id}` };
  if (contractOf === undefined) {
    return { verdict: 'revise', reason, revisedAction: { ...action, args } };
  }
  const contract = contractOf(action.name ?? '');
  // As proposed, not as executed: what is still to be filled may be the next revision's.
  const checked = contract && checkArguments(contract, args, { phase: 'proposed' });
  if (checked === undefined || checked.problems.length > 0) {
    return { verdict: 'block', reason: `invalid_revision:${rule.id}` };
  }
  return { verdict: 'revise', reason, revisedAction: { ...action, args: checked.args } };
}

function toolRisk({ action, toolRisk: risk = 0 }: ReviewInput): number {
  return action.kind === 'tool' ? risk : 0;
}

function fillReason(reason: string, { action, agent }: ReviewInput): string {
  const values = { tool: action.name, kind: action.kind, agent: agent.name, target: action.agent };
  return reason.replace(/\{(tool|kind|agent|target)\}/, (_, name: keyof typeof values) =>
    (values[name] ?? '').slice(0, 128),
  );
}
