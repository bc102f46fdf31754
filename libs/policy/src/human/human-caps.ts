import { fitsDecimals, type JsonObject } from '@writ/kernel';
import { centsDown, centsUp, usdFromCents } from '../cel/cents.ts';
import { matchesGlob } from '../glob.ts';
import type { HumanCap, Policy } from '../types.ts';

/** Who decides an approval. */
export interface Approver {
  readonly name: string;
  /** All roles of the approver, who has the permissions of each of them. */
  readonly roles?: readonly string[] | undefined;
}

/** A call that a human approves, with the arguments as edited by the approver. */
export interface HumanDecision {
  readonly tool: string;
  readonly args: JsonObject;
  readonly approver: Approver;
}

/** Whether an approver is permitted to approve, with the basis for the audit record (SV-5). */
export type HumanCheck =
  | {
      readonly allowed: true;
      /**
       * `approved_by_human`, or `approved_with_cap:<n>` when a cap applies to the approver; `<n>` is the approved value
       * of the first capped argument, not the cap.
       */
      readonly basis: string;
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
 * Returns the caps that apply to an approver for a tool, one per argument (SV-5). For each role of the approver, the
 * first cap in the document that matches name and role is used; the highest cap of all roles applies. Without an
 * approver, returns the caps that apply to all approvers.
 */
export function humanCaps(
  policy: Policy,
  { tool, approver }: { readonly tool: string; readonly approver?: Approver | undefined },
): readonly HumanCap[] {
  const highest = new Map<string, HumanCap>();
  for (const role of rolesOf(approver)) {
    const ofRole = new Map<string, HumanCap>();
    for (const cap of policy.humanCaps) {
      const fits =
        matchesGlob(cap.tool, tool) &&
        matchesGlob(cap.approver, approver?.name ?? '') &&
        matchesGlob(cap.role, role);
      if (fits && !ofRole.has(cap.argument)) ofRole.set(cap.argument, cap);
    }
    for (const [argument, cap] of ofRole) {
      const known = highest.get(argument);
      if (known === undefined || known.max < cap.max) highest.set(argument, cap);
    }
  }
  return [...highest.values()];
}

/**
 * Checks whether an approver is permitted to approve these arguments (SV-5). Rejects an argument
 * above the cap (`above_human_cap`), one that is not a number (`invalid_requested_amount_type`), one that
 * is missing or not greater than zero, or that has fractions of a cent for a cap in USD
 * (`invalid_requested_amount`), and an approver without a cap for a capped argument (`no_human_cap`).
 */
export function checkHumanDecision(policy: Policy, decision: HumanDecision): HumanCheck {
  const { tool, args, approver } = decision;
  const caps = humanCaps(policy, { tool, approver });
  const missing = policy.humanCaps.filter(
    (cap) => matchesGlob(cap.tool, tool) && caps.every((own) => own.argument !== cap.argument),
  );
  if (missing[0] !== undefined) {
    const message = `${approver.name} is not permitted to approve ${tool}: ${missingCap(missing, missing[0].argument, approver)}`;
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
    if (cap.unit === 'usd' && !fitsDecimals(Number(value), 2)) {
      const message = `${cap.argument} must be in whole cents: at most 2 decimal places.`;
      return { allowed: false, reason: 'invalid_requested_amount', message };
    }
  }
  return { allowed: true, basis: basisOf(caps, args) };
}

/** An approval limited to the caps of its approver. */
export type CappedApproval =
  | { readonly approved: true; readonly args: JsonObject; readonly basis: string }
  | { readonly approved: false; readonly basis: string };

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
  if (!check.allowed) return { approved: false, basis: check.reason };
  return { approved: true, args, basis: check.basis };
}

function rolesOf(approver: Approver | undefined): readonly string[] {
  const roles = approver?.roles ?? [];
  return roles.length === 0 ? [''] : roles;
}

/**
 * Returns the end of the error message: the roles or approvers to which the caps on an argument apply, and the roles of
 * the approver.
 */
function missingCap(caps: readonly HumanCap[], argument: string, approver: Approver): string {
  const ofArgument = caps.filter((cap) => cap.argument === argument);
  const wanted = ofArgument.map(({ role, approver: name }) =>
    [role === '*' ? '' : `the role ${role}`, name === '*' ? '' : `the name ${name}`]
      .filter((part) => part !== '')
      .join(' and '),
  );
  const has =
    approver.roles === undefined || approver.roles.length === 0
      ? 'this approver has no role'
      : `roles of this approver: ${approver.roles.join(', ')}`;
  return `a cap on ${argument} requires ${[...new Set(wanted)].join(' or ')}; ${has}.`;
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

function basisOf([cap]: readonly HumanCap[], args: JsonObject): string {
  return cap === undefined ? 'approved_by_human' : `approved_with_cap:${args[cap.argument]}`;
}

function unitOf(cap: HumanCap): string {
  return cap.unit === 'usd' ? ' USD' : '';
}
