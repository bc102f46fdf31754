import type { SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { isWritError, type RunKey } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { type AgentRow, agentsOf } from '../../store/agent/agents.ts';
import { loadRun } from '../../store/run/runs.ts';

/** The agents of a run, parents before children, and the slot states of the agents in its pool, by instance. */
export interface RunAgents {
  readonly agents: readonly AgentRow[];
  readonly slots: ReadonlyMap<string, SlotState>;
}

/**
 * Reads the supervision tree of a run (SUP-1).
 * @throws NotFoundError RUN_NOT_FOUND
 */
export async function readRunAgents(
  context: Pick<SupervisorContext, 'store' | 'peers'>,
  run: RunKey,
): Promise<RunAgents> {
  const { ended_at } = await loadRun(context.store.db, run);
  const slots = ended_at === null ? await readSlots(context, run) : new Map<string, SlotState>();
  const agents = await agentsOf(context.store.db, run);
  // The agents are sorted in the process, because pages require an order that does not depend on the collation of the
  // database.
  return { agents: agents.toSorted(byDepth), slots };
}

function byDepth(a: AgentRow, b: AgentRow): number {
  return a.depth - b.depth || (a.instance < b.instance ? -1 : 1);
}

/**
 * Returns the slot states in the pool of a run by instance; empty before the pool is open and while spawn-budget is
 * unavailable, because the tree can be read without them.
 */
async function readSlots(
  { peers }: Pick<SupervisorContext, 'peers'>,
  run: RunKey,
): Promise<Map<string, SlotState>> {
  try {
    const { pool } = await peers.spawnBudget.getPool(run);
    const slots = pool === undefined ? [] : [...pool.holders, ...pool.paused, ...pool.waiting];
    return new Map(slots.map(({ agent, state }) => [agent?.instance ?? '', state]));
  } catch (error) {
    if (isWritError(error)) return new Map();
    throw error;
  }
}
