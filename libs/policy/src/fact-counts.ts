import { clamp } from './cents.ts';
import type { Expression, Policy, ProposedAction } from './types.ts';
import { updatesFor } from './updates.ts';

/** What an action counts for, by cap; `failed` is the cap for which that cannot be computed. */
export interface Counts {
  readonly counts: Readonly<Record<string, number>>;
  readonly failed: string | undefined;
}

/** What an action would count for if it were approved; less than nothing cannot be counted (SV-3). */
export function countsOf(policy: Policy, action: ProposedAction): Counts {
  const counts: Record<string, number> = {};
  if (action.kind !== 'tool' || action.name === undefined) return { counts, failed: undefined };
  const context = { args: action.args ?? {}, limits: policy.limits };
  for (const { fact, update } of updatesFor(policy, action.name)) {
    if (update.count === undefined) continue;
    const count = evaluateCount(update.count, context);
    if (count === undefined) return { counts, failed: fact.name };
    counts[fact.name] = count;
  }
  return { counts, failed: undefined };
}

function evaluateCount(
  expression: Expression,
  context: Readonly<Record<string, unknown>>,
): number | undefined {
  try {
    const value = expression.evaluate(context);
    return typeof value === 'bigint' && value >= 0n ? Number(clamp(value)) : undefined;
  } catch {
    // An argument that is missing or of another type than expected; the caller blocks the action.
    return undefined;
  }
}
