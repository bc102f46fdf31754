import type { AgentKey } from '@writ/kernel';
import { livingAgents } from '../../store/agents.ts';
import type { Dependencies } from './dependencies.ts';

/** The presence of an agent in the store of a worker; `not_served` when this worker does not serve the tenant. */
export type Presence = 'alive' | 'ended' | 'unknown' | 'not_served';

/** Returns the presence of agents in the store of this worker, in the order of `keys` (BD-3). */
export async function findAgents(
  { store, tenants }: Pick<Dependencies, 'store' | 'tenants'>,
  keys: readonly AgentKey[],
): Promise<Presence[]> {
  const isLiving = await livingAgents(store.db, keys);
  return keys.map(({ tenant }, index) => {
    if (tenants.length > 0 && !tenants.includes(tenant)) return 'not_served';
    const living = isLiving[index];
    if (living === undefined) return 'unknown';
    return living ? 'alive' : 'ended';
  });
}
