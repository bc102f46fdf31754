import type { ReviewInput } from './context.ts';
import { type Decision, review } from './review.ts';
import type { Policy, ProposedAction, Verdict } from './types.ts';

/** How often the rules run again on a revised action (SV-10). */
export const MAX_REVISIONS = 4;

/** One pass: the action that was looked at and what the rules said of it. */
export interface ReviewPass {
  readonly action: ProposedAction;
  readonly decision: Decision;
}

/** What the rules come to after all revisions (SV-10). */
export interface ReviewOutcome {
  /** The last word: `approve`, `escalate` or `block`, never `revise`. */
  readonly verdict: Exclude<Verdict, 'revise'>;
  /** The reason, rule and counts that count are those of this decision. */
  readonly decision: Decision;
  /** The action that the verdict is about: the proposed one, or the last revision of it. */
  readonly action: ProposedAction;
  /** Whether the action is another one than was proposed. */
  readonly revised: boolean;
  /** The decision to show in a run's trace (SV-7). */
  readonly shown: ReviewPass;
  readonly passes: readonly ReviewPass[];
}

/**
 * Reviews an action, and its revision in its turn, until the rules no longer revise; after
 * {@link MAX_REVISIONS} runs on revised actions the answer is a block, `revision_limit` (SV-10).
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
  const first = (verdict: Verdict) => passes.find((pass) => pass.decision.verdict === verdict);
  if (last.decision.verdict === 'block') return last;
  return first('escalate') ?? first('revise') ?? last;
}
