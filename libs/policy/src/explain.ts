import type { Decision } from './review.ts';
import type { Policy } from './types.ts';

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
