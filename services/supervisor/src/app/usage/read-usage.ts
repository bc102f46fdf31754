import type { AgentKey, RunKey } from '@writ/kernel';
import type { Person } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { readableTenant } from '../../domain/usage/usage-rights.ts';
import type { SupervisorPeers } from '../../peers/peers.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import { loadRun } from '../../store/run/runs.ts';

type Reader = Pick<SupervisorContext, 'store' | 'peers'>;
type UsageQuery = Parameters<SupervisorPeers['executionMeter']['queryUsage']>[0];

/**
 * Reads the pool of a run.
 * @throws NotFoundError RUN_NOT_FOUND; POOL_NOT_FOUND before the run has started
 */
export async function readPool({ store, peers }: Reader, run: RunKey) {
  await loadRun(store.db, run);
  return await peers.spawnBudget.getPool(run);
}

/**
 * Reads the tab of an agent; an empty `instance` is the root.
 * @throws NotFoundError RUN_NOT_FOUND, AGENT_NOT_FOUND; TAB_NOT_FOUND before the run has started
 */
export async function readTab({ store, peers }: Reader, key: AgentKey) {
  const { root_instance } = await loadRun(store.db, key);
  const agent = { ...key, instance: key.instance || root_instance };
  await loadAgent(store.db, agent);
  return await peers.executionMeter.getTab(agent);
}

/**
 * Reads the balances of a tenant and, unless `sessionId` is empty, of a session.
 * @throws PermissionDeniedError OPERATOR_REQUIRED
 */
export async function readBalances(
  { peers }: Reader,
  person: Person,
  { tenant, sessionId }: { readonly tenant: string; readonly sessionId: string },
) {
  return await peers.executionMeter.getBalances(readableTenant(person, tenant), sessionId);
}

/**
 * Sums settled usage.
 * @throws PermissionDeniedError OPERATOR_REQUIRED; InvalidRequestError INVALID_PAGE_TOKEN
 */
export async function sumUsage({ peers }: Reader, person: Person, query: UsageQuery) {
  const tenant = readableTenant(person, query.tenant ?? '');
  return await peers.executionMeter.queryUsage({ ...query, tenant });
}
