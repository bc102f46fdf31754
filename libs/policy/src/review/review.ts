import { checkArguments } from '@writ/kernel';
import { countsOf, resultFieldsFor } from '../facts/fact-updates.ts';
import type { Policy, ProposedAction, Rule, RuleVerdict } from '../types.ts';
import { type ReviewInput, ruleContext, subjectOf } from './context.ts';
import { mismatch } from './match.ts';
import { adjust } from './revise.ts';

/** Result of one evaluated rule, for human readers (`writ policy explain`). */
export interface RuleTrace {
  readonly ruleId: string;
  /** Line of the rule in the document. */
  readonly line: number;
  readonly outcome: 'no_match' | 'condition_false' | 'escalation_skipped' | 'failed' | 'decided';
  /** Such as `tool is send_refund_email`; names and conditions, never argument values. */
  readonly detail: string;
}

/** Result of one pass over the rules (SV-3). */
export interface Decision {
  readonly verdict: RuleVerdict;
  readonly reason: string;
  /** Undefined when no rule matched. */
  readonly ruleId: string | undefined;
  /** The rule's risk or the tool's, whichever is higher; 0 to 100. */
  readonly risk: number;
  readonly policyVersion: string;
  /** Only for `revise`: the replacement action, which is reviewed again (SV-10). */
  readonly revisedAction: ProposedAction | undefined;
  /** Only for `approve`: the amount that the action adds at once to each fact of kind cap, by name of the fact. */
  readonly counts: Readonly<Record<string, number>>;
  /** Dotted result paths that the receipt must contain. */
  readonly resultFields: readonly string[];
  /** The evaluated rules in order; the last one decided, if any did. */
  readonly why: readonly RuleTrace[];
}

type Ruling = Pick<Decision, 'verdict' | 'reason'> &
  Partial<Pick<Decision, 'revisedAction' | 'counts'>>;

/**
 * Evaluates the ordered rules once; the first match decides (SV-3). The verdict is block when no rule matches
 * (`no_rule_matched`) or an evaluation fails (SYS-4): `policy_error:<rule>`, `policy_error:facts.<fact>` for a count,
 * `invalid_revision:<rule>` for a revision that violates the schema of the tool. An approval at or above
 * `approvalRequiredRisk` becomes an escalation with the reason `risk_requires_approval`, unless `skipEscalation` is
 * set.
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
    resultFields:
      input.action.kind !== 'tool' || subject.tool === ''
        ? []
        : resultFieldsFor(policy, subject.tool),
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
      trace('escalation_skipped', 'a human has approved');
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
    return finish(applyRule(policy, rule, input, context), rule);
  }
  return finish({ verdict: 'block', reason: 'no_rule_matched' });
}

/** Returns the value of the condition; undefined when it cannot be evaluated or is not a boolean. */
function conditionHolds(rule: Rule, context: Readonly<Record<string, unknown>>) {
  if (rule.when === undefined) return true;
  try {
    const value = rule.when.evaluate(context);
    return typeof value === 'boolean' ? value : undefined;
  } catch {
    // An argument is missing or has an unexpected type; the caller blocks the action.
    return undefined;
  }
}

function applyRule(
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
  // Only the client knows the schema of a tool that it executes itself.
  if (contractOf === undefined || action.kind === 'client_tool') {
    return { verdict: 'revise', reason, revisedAction: { ...action, args } };
  }
  const contract = contractOf(action.name ?? '');
  // Validated as proposed: the next revision can still fill missing arguments.
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

/**
 * Explains a decision to a human reader: one line per evaluated rule, then the verdict. Contains
 * names and conditions, but no argument values.
 */
export function explainDecision(policy: Policy, decision: Decision): readonly string[] {
  const rules = decision.why.map(
    ({ line, ruleId, outcome, detail }) =>
      `${policy.file}:${line} ${ruleId}: ${outcome.replaceAll('_', ' ')} (${detail})`,
  );
  const { verdict, reason, risk, policyVersion } = decision;
  return [...rules, `${verdict}: ${reason} (risk ${risk}, policy ${policyVersion.slice(0, 12)})`];
}
