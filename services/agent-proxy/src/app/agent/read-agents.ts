import { type AgentKey, NotFoundError } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { type AgentRow, agentsOf, findAgent } from '../../store/agents.ts';

/**
 * Returns an agent that was delivered.
 * @throws NotFoundError AGENT_NOT_FOUND
 */
export async function loadAgent(
  { store }: Pick<ProxyContext, 'store'>,
  key: AgentKey,
): Promise<AgentRow> {
  const agent = await findAgent(store.db, key);
  if (agent !== undefined) return agent;
  throw new NotFoundError(
    'AGENT_NOT_FOUND',
    `Agent ${key.instance} does not exist in run ${key.runId}.`,
    { run_id: key.runId, agent: key.instance },
  );
}

/** The presence of an agent in the store of agent-proxy; `not_served` when this process does not serve the tenant. */
export type Presence = 'alive' | 'ended' | 'unknown' | 'not_served';

/** Returns the presence of agents in the store of agent-proxy, in the order of `keys` (BD-3). */
export async function findAgents(
  { store, config }: Pick<ProxyContext, 'store' | 'config'>,
  keys: readonly AgentKey[],
): Promise<Presence[]> {
  const { tenants } = config;
  const presences: Presence[] = [];
  for (const key of keys) {
    const agent = await findAgent(store.db, key);
    const isServed = tenants.length === 0 || tenants.includes(key.tenant);
    if (!isServed) presences.push('not_served');
    else if (agent === undefined) presences.push('unknown');
    else presences.push(agent.ended_at === null ? 'alive' : 'ended');
  }
  return presences;
}

/** Lists the agents of a run. */
export async function describeRun(
  { store }: Pick<ProxyContext, 'store'>,
  run: { readonly tenant: string; readonly runId: string },
): Promise<readonly AgentRow[]> {
  return await agentsOf(store.db, run);
}
