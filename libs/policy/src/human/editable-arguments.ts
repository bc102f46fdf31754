import { matchesGlob } from '../glob.ts';
import type { Policy } from '../types.ts';

/**
 * Returns the arguments that an approver may change (SV-5): the `editable` list of the rule that escalated; without it,
 * the arguments that `human.editable` lists for the tool; without these, the arguments with a cap.
 * @param ruleId the rule that escalated; empty when no rule escalated
 */
export function editableArguments(
  { rules, editable, humanCaps: caps }: Policy,
  { tool, ruleId }: { readonly tool: string; readonly ruleId: string },
): readonly string[] {
  const ofRule = rules.find(({ id }) => id === ruleId)?.editable;
  if (ofRule !== undefined) return ofRule;
  const ofTool = editable.filter((entry) => matchesGlob(entry.tool, tool));
  const names =
    ofTool.length > 0
      ? ofTool.flatMap((entry) => entry.arguments)
      : caps.filter((cap) => matchesGlob(cap.tool, tool)).map((cap) => cap.argument);
  return [...new Set(names)];
}
