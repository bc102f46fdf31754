import { matchesGlob } from './glob.ts';
import type { Fact, FactUpdate, Policy } from './types.ts';

/** An update for a tool, with its fact. */
export interface ToolUpdate {
  readonly fact: Fact;
  readonly update: FactUpdate;
}

/**
 * Returns the updates that actions and receipts of a tool cause, in document order. For a cap, only
 * the first update whose `tool` matches, so that nothing is counted twice; for a gate all, of which
 * the first whose `when` holds applies.
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
 * facts (SV-3); a path below another listed path is omitted.
 */
export function resultFieldsFor(policy: Policy, tool: string): readonly string[] {
  const paths = updatesFor(policy, tool).flatMap(({ update }) => update.resultFields);
  const unique = [...new Set(paths)].sort();
  return unique.filter((path) => !unique.some((other) => path.startsWith(`${other}.`)));
}
