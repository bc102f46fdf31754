import { clamp } from './cents.ts';
import type { Expression, Policy, ProposedAction } from './types.ts';
import { updatesFor } from './updates.ts';

/** Count of an action by cap fact; `failed` is the fact whose count cannot be computed. */
export interface Counts {
  readonly counts: Readonly<Record<string, number>>;
  readonly failed: string | undefined;
}

/** Computes the counts of an action if it is approved; a negative count is an error (SV-3). */
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
    // An argument is missing or has an unexpected type; the caller blocks the action.
    return undefined;
  }
}
