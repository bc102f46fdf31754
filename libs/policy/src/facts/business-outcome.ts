import { matchesGlob } from '../glob.ts';
import type { OutcomeRule, Policy } from '../types.ts';
import type { FactReceipt } from './fact-types.ts';
import { nested } from './result-fields.ts';

/** Whether an executed call achieved its purpose, according to its result. */
export type BusinessOutcome = 'ok' | 'failed' | 'unknown';

/** Result fields that determine the outcome by convention when the policy has no rule for a tool. */
export const CONVENTIONAL_FIELDS = ['error', 'status'] as const;

/** Values of `status` that mean failure by convention. */
const FAILED = ['error', 'failed', 'failure'];

/** Returns the first rule for a tool. */
export function outcomeRuleFor(policy: Policy, tool: string): OutcomeRule | undefined {
  return policy.outcomes.find((rule) => matchesGlob(rule.tool, tool));
}

/**
 * Returns the business outcome of a call (SV-8); undefined when the call was not executed. The outcome can be failed
 * although the call succeeded, for example when the bank refused a refund. A receipt that reports failed or unknown
 * determines the outcome. After a succeeded call, the rule of the policy for the tool decides; a rule that cannot be
 * evaluated means failed. If the policy has no rule for the tool, the outcome is failed when the `error` of the result
 * is set and is not null, false, 0 or an empty string, or when its `status` is error, failed or failure.
 */
export function businessOutcome(
  policy: Policy,
  { tool, status, fields = {} }: Omit<FactReceipt, 'callId'>,
): BusinessOutcome | undefined {
  if (status === 'refused') return undefined;
  if (status !== 'succeeded') return status;
  const rule = outcomeRuleFor(policy, tool);
  if (rule === undefined) {
    const { error, status: reported } = fields;
    const failed = Boolean(error) || (typeof reported === 'string' && FAILED.includes(reported));
    return failed ? 'failed' : 'ok';
  }
  try {
    const context = { result: nested(fields), limits: policy.limits };
    return rule.okWhen.evaluate(context) === true ? 'ok' : 'failed';
  } catch {
    // A field that the rule reads is missing or has an unexpected type.
    return 'failed';
  }
}
