import type { JsonObject } from '@writ/kernel';
import { centsDown, centsUp, usdFromCents } from '../cel/cents.ts';
import { matchesGlob } from '../glob.ts';
import type { HumanCap, Policy } from '../types.ts';

/** Who decides an approval. */
export interface Approver {
  readonly name: string;
  readonly role?: string | undefined;
}

/** A call that a human approves, with the arguments as edited by the approver. */
export interface HumanDecision {
  readonly tool: string;
  readonly args: JsonObject;
  readonly approver: Approver;
}

/**
 * Whether an action requires an approver other than the user who started the run (SV-5).
 * @param tool empty for an action that is not a tool call
 */
export function requiresFourEyes({ fourEyes }: Policy, tool: string): boolean {
  return fourEyes.some((pattern) => matchesGlob(pattern, tool));
}

/** Whether an approver is permitted to approve, with the comment for the audit record (SV-5). */
export type HumanCheck =
  | {
      readonly allowed: true;
      /** `approved_by_human`, or `approved_with_cap:<n>` when a cap applies to the approver. */
      readonly comment: string;
    }
  | {
      readonly allowed: false;
      readonly reason:
        | 'invalid_requested_amount_type'
        | 'invalid_requested_amount'
        | 'above_human_cap'
        | 'no_human_cap';
      /** One sentence for the approver, with the argument and the cap. */
      readonly message: string;
    };

/**
 * Returns the caps that apply to an approver for a tool, one per argument: the first in the
 * document that matches name and role (SV-5). Without an approver, returns the caps that apply to
 * all approvers.
 */
export function humanCaps(
  policy: Policy,
  { tool, approver }: { readonly tool: string; readonly approver?: Approver | undefined },
): readonly HumanCap[] {
  const caps = new Map<string, HumanCap>();
  for (const cap of policy.humanCaps) {
    const fits =
      matchesGlob(cap.tool, tool) &&
      matchesGlob(cap.approver, approver?.name ?? '') &&
      matchesGlob(cap.role, approver?.role ?? '');
    if (fits && !caps.has(cap.argument)) caps.set(cap.argument, cap);
  }
  return [...caps.values()];
}

/**
 * Checks whether an approver is permitted to approve these arguments (SV-5). Rejects an argument
 * above the cap (`above_human_cap`), one that is not a number (`invalid_requested_amount_type`) or
 * not greater than zero (`invalid_requested_amount`), and an approver without a cap for a capped
 * argument (`no_human_cap`).
 */
export function checkHumanDecision(policy: Policy, decision: HumanDecision): HumanCheck {
  const { tool, args, approver } = decision;
  const caps = humanCaps(policy, { tool, approver });
  const unbound = policy.humanCaps.find(
    (cap) => matchesGlob(cap.tool, tool) && caps.every((own) => own.argument !== cap.argument),
  );
  if (unbound !== undefined) {
    const message = `${approver.name} is not permitted to approve ${tool}: no cap on ${unbound.argument} applies to this approver.`;
    return { allowed: false, reason: 'no_human_cap', message };
  }
  for (const cap of caps) {
    const { [cap.argument]: value = 0 } = args;
    const problem = amountProblem(value, cap);
    if (problem !== undefined) return problem;
    if (typeof value === 'number' && exceeds(value, cap)) {
      const message = `${cap.argument} ${value} exceeds ${approver.name}'s cap of ${cap.max}${unitOf(cap)} for ${tool}.`;
      return { allowed: false, reason: 'above_human_cap', message };
    }
  }
  return { allowed: true, comment: comment(caps, args) };
}

/** An approval limited to the caps of its approver. */
export type CappedApproval =
  | { readonly approved: true; readonly args: JsonObject; readonly comment: string }
  | { readonly approved: false; readonly comment: string };

/**
 * Returns the largest approval that the caps of the approver permit: capped arguments are lowered
 * to the cap, USD amounts rounded down to whole cents (SV-5). For consoles that suggest an edit and
 * for simulated approvers.
 */
export function cappedApproval(policy: Policy, decision: HumanDecision): CappedApproval {
  const { tool, approver } = decision;
  const args: Record<string, JsonObject[string]> = { ...decision.args };
  for (const cap of humanCaps(policy, { tool, approver })) {
    const value = args[cap.argument];
    if (typeof value === 'number') args[cap.argument] = lowered(value, cap);
  }
  const check = checkHumanDecision(policy, { tool, args, approver });
  if (!check.allowed) return { approved: false, comment: check.reason };
  return { approved: true, args, comment: check.comment };
}

function amountProblem(value: JsonObject[string], cap: HumanCap): HumanCheck | undefined {
  if (typeof value !== 'number') {
    const message = `${cap.argument} must be a number.`;
    return { allowed: false, reason: 'invalid_requested_amount_type', message };
  }
  if (value > 0) return undefined;
  const message = `${cap.argument} must be greater than zero.`;
  return { allowed: false, reason: 'invalid_requested_amount', message };
}

function exceeds(value: number, cap: HumanCap): boolean {
  return cap.unit === 'usd' ? centsUp(value) > centsDown(cap.max) : value > cap.max;
}

function lowered(value: number, cap: HumanCap): number {
  const least = Math.min(value, cap.max);
  return cap.unit === 'usd' ? usdFromCents(centsDown(least)) : least;
}

function comment([cap]: readonly HumanCap[], args: JsonObject): string {
  return cap === undefined ? 'approved_by_human' : `approved_with_cap:${args[cap.argument]}`;
}

function unitOf(cap: HumanCap): string {
  return cap.unit === 'usd' ? ' USD' : '';
}
