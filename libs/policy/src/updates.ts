import { matchesGlob } from './glob.ts';
import type { Fact, FactUpdate, Policy } from './types.ts';

/** An update that concerns a tool, and the fact that it belongs to. */
export interface ToolUpdate {
  readonly fact: Fact;
  readonly update: FactUpdate;
}

/**
 * The updates that a tool's actions and receipts cause, in the order of the document. Of a cap it
 * is only the first whose `tool` fits, so that nothing is counted twice; of a gate all, of which
 * the first whose `when` holds is used.
 */
export function updatesFor(policy: Policy, tool: string): readonly ToolUpdate[] {
  return policy.facts.flatMap((fact) => {
    const fitting = fact.updates.filter((update) => matchesGlob(update.tool, tool));
    const used = fact.kind === 'cap' ? fitting.slice(0, 1) : fitting;
    return used.map((update) => ({ fact, update }));
  });
}

/**
 * The dotted paths of a tool's result that its receipt must bring back for the facts (SV-3),
 * sorted; a path below another one that is listed is left out.
 */
export function resultFieldsFor(policy: Policy, tool: string): readonly string[] {
  const paths = updatesFor(policy, tool).flatMap(({ update }) => update.resultFields);
  const unique = [...new Set(paths)].sort();
  return unique.filter((path) => !unique.some((other) => path.startsWith(`${other}.`)));
}
