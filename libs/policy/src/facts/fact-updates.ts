import { clamp } from '../cel/cents.ts';
import { matchesGlob } from '../glob.ts';
import type { Expression, Fact, FactUpdate, Policy, ProposedAction } from '../types.ts';
import { CONVENTIONAL_FIELDS, outcomeRuleFor } from './business-outcome.ts';

/** An update for a tool, with its fact. */
export interface ToolUpdate {
  readonly fact: Fact;
  readonly update: FactUpdate;
}

/**
 * Returns the updates that actions and receipts of a tool cause, in document order. For a cap, returns only the first
 * update whose `tool` matches, so that nothing is counted twice. For a gate, returns all matching updates; the first
 * one whose `when` is true applies, unless an earlier one cannot be computed.
 */
export function updatesFor(policy: Policy, tool: string): readonly ToolUpdate[] {
  return policy.facts.flatMap((fact) => {
    const fitting = fact.updates.filter((update) => matchesGlob(update.tool, tool));
    const used = fact.kind === 'cap' ? fitting.slice(0, 1) : fitting;
    return used.map((update) => ({ fact, update }));
  });
}

/**
 * Returns the sorted dotted paths of the result that the receipt of a tool must contain for the
 * facts and for its business outcome (SV-3, SV-8); a path below another listed path is omitted.
 */
export function resultFieldsFor(policy: Policy, tool: string): readonly string[] {
  const paths = [
    ...updatesFor(policy, tool).flatMap(({ update }) => update.resultFields),
    ...(outcomeRuleFor(policy, tool)?.okWhen.resultFields ?? CONVENTIONAL_FIELDS),
  ];
  const unique = [...new Set(paths)].sort();
  return unique.filter((path) => !unique.some((other) => path.startsWith(`${other}.`)));
}

/**
 * The amount that an action adds to each fact of kind cap, by name of the fact. `failed` is the name of the first fact
 * whose amount cannot be computed.
 */
export interface Counts {
  readonly counts: Readonly<Record<string, number>>;
  readonly failed: string | undefined;
}

/**
 * Computes the amounts that an action adds to facts of kind cap when it is approved; a negative amount is treated as
 * not computable (SV-3).
 */
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
