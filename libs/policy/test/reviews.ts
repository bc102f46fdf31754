import { Priority } from '@writ/kernel';
import {
  initialFacts,
  loadPolicy,
  type Policy,
  type ProposedAction,
  type ReviewInput,
  review,
} from '../src/index.ts';

/** Loads a policy with rules in YAML; `head` contains the keys before them. */
export function policyOf(rules: string, head = ''): Policy {
  return loadPolicy(`policy: p\n${head}rules:\n${rules}`, { file: 'p.yaml' });
}

/** The input of a review in the tenant `acme`. */
export function input(policy: Policy, action: ProposedAction, more: Partial<ReviewInput> = {}) {
  return {
    action,
    facts: initialFacts(policy),
    agent: { name: 'support', instance: 'support-1' },
    tenant: 'acme',
    supervision: {
      runId: 'run-1',
      sessionId: 'session-1',
      depth: 0,
      priority: Priority.NORMAL,
      retention: 'run',
    },
    ...more,
  };
}

/** A tool call. */
export const call = (name: string, args: ProposedAction['args'] = {}) => ({
  kind: 'tool',
  name,
  args,
});
/** Reviews an action once. */
export const decide = (policy: Policy, action: ProposedAction, more: Partial<ReviewInput> = {}) =>
  review(policy, input(policy, action, more));
/** Reviews an action once; returns verdict and reason. */
export const short = (policy: Policy, action: ProposedAction, more: Partial<ReviewInput> = {}) => {
  const { verdict, reason } = decide(policy, action, more);
  return `${verdict} ${reason}`;
};
