import { canonicalDigest } from '@writ/kernel';
import type { Tool } from './tool.ts';

/** Wildcard of allowlists. */
export const EVERY = '*';

/** Allowed tools by agent or tenant; `*` matches every name that is not listed, and every tool. */
type Allowlist = Readonly<Record<string, readonly string[]>>;

/** Allowlists of this gateway, which apply in addition to the writ. An absent list allows everything. */
export interface Allow {
  /** By the name of the agent's manifest. */
  readonly agents?: Allowlist;
  readonly tenants?: Allowlist;
}

/** The caller, as allowlists identify it. */
interface Client {
  readonly tenant: string;
  /** Name of the agent's manifest. */
  readonly agentName: string;
}

/** The names that an allowlist lets call one tool: `names`, or with `except` every other name. */
export interface AllowRule {
  readonly names: readonly string[];
  readonly except: boolean;
}

/** The rules of one tool; undefined where there is no allowlist. */
export interface AllowRules {
  readonly agents: AllowRule | undefined;
  readonly tenants: AllowRule | undefined;
}

/** Every tool of a gateway. */
export interface Registry {
  /** Content hash of the whole registry. */
  readonly version: string;
  /** Tools by name, ordered by name. */
  readonly tools: ReadonlyMap<string, Tool>;
  /** Whether this gateway's own allowlists let `client` call `tool` (TG-2). */
  allows(client: Client, tool: string): boolean;
  /** The allowlists for one tool, so that the supervisor decides as `allows` does. */
  rulesOf(tool: string): AllowRules;
}

/** Creates the registry of tools with unique names. */
export function createRegistry(tools: readonly Tool[], allow: Allow = {}): Registry {
  const sorted = tools.toSorted((left, right) => (left.name < right.name ? -1 : 1));
  return Object.freeze({
    version: canonicalDigest({
      tools: sorted.map(({ digest }) => digest),
      agents: allow.agents ?? null,
      tenants: allow.tenants ?? null,
    }),
    tools: new Map(sorted.map((tool) => [tool.name, tool])),
    allows: ({ tenant, agentName }: Client, tool: string) =>
      isListed(allow.agents, agentName, tool) && isListed(allow.tenants, tenant, tool),
    rulesOf: (tool: string) => ({
      agents: ruleOf(allow.agents, tool),
      tenants: ruleOf(allow.tenants, tool),
    }),
  });
}

/** The wildcard applies to a name that is not in a list; without it, such a name may call nothing. */
function isListed(list: Allowlist | undefined, name: string, tool: string): boolean {
  if (list === undefined) return true;
  const tools = (Object.hasOwn(list, name) ? list[name] : list[EVERY]) ?? [];
  return tools.includes(tool) || tools.includes(EVERY);
}

/**
 * The rule of one tool: if the wildcard allows the tool, the names that may not call it (`except`); otherwise the names
 * that may.
 */
function ruleOf(list: Allowlist | undefined, tool: string): AllowRule | undefined {
  if (list === undefined) return undefined;
  const except = isListed(list, EVERY, tool);
  const names = Object.keys(list).filter(
    (name) => name !== EVERY && isListed(list, name, tool) !== except,
  );
  return { names, except };
}
