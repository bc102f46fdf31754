import { matchesGlob } from '../glob.ts';
import type { Policy } from '../types.ts';

/**
 * Whether an action requires an approver other than the user who started the run (SV-5). Default: true, if the policy
 * does not set `four_eyes`.
 * @param tool empty for an action that is not a tool call
 */
export function requiresFourEyes({ fourEyes }: Policy, tool: string): boolean {
  return fourEyes?.some((pattern) => matchesGlob(pattern, tool)) ?? true;
}
