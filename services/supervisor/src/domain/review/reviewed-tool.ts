import type { ArgumentContract } from '@writ/kernel';

/** The fields of the gateway's tool definition that a review needs. */
export interface ReviewedTool {
  readonly name: string;
  /** The gateway's digest of the definition; a writ contains it (TG-1). */
  readonly definitionDigest: string;
  /** The argument contract, compiled from the gateway's schema (TG-3). */
  readonly contract: ArgumentContract;
  /** 0 to 100. */
  readonly risk: number;
  /** Whether its side effect class is not read_only. */
  readonly hasEffect: boolean;
  /** The agents that the gateway's own allowlist lets call the tool; undefined when there is none (TG-2). */
  readonly agents?: AllowRule | undefined;
  /** The tenants that the gateway's own allowlist lets call the tool; undefined when there is none (TG-2). */
  readonly tenants?: AllowRule | undefined;
}

/** A rule that allows a tool for `names`, or with `except` for every other name. */
export interface AllowRule {
  readonly names: readonly string[];
  readonly except: boolean;
}

/** Whether the allowlists of the gateway let an agent of a tenant call a tool. */
export function gatewayAllows(
  { agents, tenants }: Pick<ReviewedTool, 'agents' | 'tenants'>,
  { agentName, tenant }: { readonly agentName: string; readonly tenant: string },
): boolean {
  return isAllowed(agents, agentName) && isAllowed(tenants, tenant);
}

function isAllowed(rule: AllowRule | undefined, name: string): boolean {
  return rule === undefined || rule.names.includes(name) !== rule.except;
}

/** Converts a risk from the contracts' scale, 0 to 1, to the policies', 0 to 100. */
export function toPolicyRisk(risk: number): number {
  // In floating point, 0.29 * 100 is not 29.
  return Math.round(risk * 10_000) / 100;
}

/** Converts a risk from the policies' scale, 0 to 100, to the contracts', 0 to 1. */
export function toContractRisk(risk: number): number {
  return Math.round(risk * 100) / 10_000;
}
