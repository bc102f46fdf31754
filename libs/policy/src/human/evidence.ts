import { matchesGlob } from '../glob.ts';
import type { Policy } from '../types.ts';

/** Whether approvers see the results of a tool (SV-5). */
export function isEvidence({ evidence }: Policy, tool: string): boolean {
  return evidence.observations.some((pattern) => matchesGlob(pattern, tool));
}
