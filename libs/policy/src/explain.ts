import type { Decision } from './review.ts';
import type { Policy } from './types.ts';

/**
 * How a decision came about, for people: a line for each rule that was looked at, then the
 * verdict. Names and conditions, never argument values.
 */
export function explainDecision(policy: Policy, decision: Decision): readonly string[] {
  const rules = decision.why.map(
    ({ line, ruleId, outcome, detail }) =>
      `${policy.file}:${line} ${ruleId}: ${outcome.replaceAll('_', ' ')} (${detail})`,
  );
  const { verdict, reason, risk, policyVersion } = decision;
  return [...rules, `${verdict}: ${reason} (risk ${risk}, policy ${policyVersion.slice(0, 12)})`];
}
