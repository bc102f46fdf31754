import { canonicalDigest } from '@writ/kernel';
import type { Tool } from './tool.ts';

/** Wildcard of allowlists. */
export const EVERY = '*';

/**
 * Allowed tools by agent or tenant. The key `*` matches every agent or tenant without a key of its own; the tool `*`
 * matches every tool.
 */
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

/** A rule of an allowlist for one tool: it allows `names`, or with `except` every other name. */
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

/**
 * Whether an allowlist lets a name call a tool. The wildcard entry applies to names without an entry; without a
 * wildcard entry, such a name may call no tool.
 */
function isListed(list: Allowlist | undefined, name: string, tool: string): boolean {
  if (list === undefined) return true;
  const tools = (Object.hasOwn(list, name) ? list[name] : list[EVERY]) ?? [];
  return tools.includes(tool) || tools.includes(EVERY);
}

/**
 * Returns the rule for one tool: if the wildcard entry allows the tool, every name except the returned names may call
 * it; otherwise only the returned names may call it.
 */
function ruleOf(list: Allowlist | undefined, tool: string): AllowRule | undefined {
  if (list === undefined) return undefined;
  const except = isListed(list, EVERY, tool);
  const names = Object.keys(list).filter(
    (name) => name !== EVERY && isListed(list, name, tool) !== except,
  );
  return { names, except };
}
