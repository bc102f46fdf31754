import type { Policy, ProposedAction, RuleVerdict } from '../types.ts';
import type { ReviewInput } from './context.ts';
import { type Decision, review } from './review.ts';

/** Maximum number of reviews of revised actions (SV-10). */
export const MAX_REVISIONS = 4;

/** One pass: the reviewed action and the decision. */
export interface ReviewPass {
  readonly action: ProposedAction;
  readonly decision: Decision;
}

/** Result of a review after all revisions (SV-10). */
export interface ReviewOutcome {
  /** The final verdict: `approve`, `escalate` or `block`, never `revise`. */
  readonly verdict: Exclude<RuleVerdict, 'revise'>;
  /** The final decision, with the reason, rule and counts that apply. */
  readonly decision: Decision;
  /** The action that the verdict applies to: the proposed one or its last revision. */
  readonly action: ProposedAction;
  /** Whether a rule revised the action, even if the revision changed no argument. */
  readonly revised: boolean;
  /** The decision to show in a run's trace (SV-7). */
  readonly shown: ReviewPass;
  readonly passes: readonly ReviewPass[];
}

/**
 * Reviews an action and its revisions until no rule revises it; after {@link MAX_REVISIONS} reviews
 * of revised actions the result is a block with reason `revision_limit` (SV-10).
 */
export function reviewToFixpoint(policy: Policy, input: ReviewInput): ReviewOutcome {
  const passes: ReviewPass[] = [];
  let { action } = input;
  for (;;) {
    const decision = review(policy, { ...input, action });
    const { verdict, revisedAction } = decision;
    const pass = { action, decision };
    passes.push(pass);
    if (verdict !== 'revise') return outcome(verdict, pass, passes);
    action = revisedAction ?? action;
    if (passes.length > MAX_REVISIONS) {
      const limit = {
        verdict: 'block',
        reason: 'revision_limit',
        revisedAction: undefined,
      } as const;
      return outcome('block', { action, decision: { ...decision, ...limit } }, passes);
    }
  }
}

function outcome(
  verdict: ReviewOutcome['verdict'],
  last: ReviewPass,
  passes: readonly ReviewPass[],
): ReviewOutcome {
  return {
    verdict,
    decision: last.decision,
    action: last.action,
    revised: passes.some((pass) => pass.decision.verdict === 'revise'),
    shown: shownPass(last, passes),
    passes,
  };
}

function shownPass(last: ReviewPass, passes: readonly ReviewPass[]): ReviewPass {
  const first = (verdict: RuleVerdict) => passes.find((pass) => pass.decision.verdict === verdict);
  if (last.decision.verdict === 'block') return last;
  return first('escalate') ?? first('revise') ?? last;
}
