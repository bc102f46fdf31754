import type { SupervisorContext } from '../../context.ts';
import { activeMsAt } from '../../domain/clock/active-clock.ts';
import { budgetFromJson } from '../../domain/manifest/manifest-json.ts';
import { activeAgents, clockOf, keyOf } from '../../store/agent/agents.ts';
import { overdueAgents } from '../../store/agent/deadline.ts';
import { endChild, recordEnding } from '../../store/agent/endings.ts';
import { overdueRuns } from '../../store/run/runs.ts';
import { rootKeyOf } from './start-run-order.ts';

/**
 * Sweep: ends runs and children past their deadline with `deadline`, and agents past their active time with
 * `max_seconds` (EM-1, SUP-8).
 */
export async function endOverdue(
  context: Pick<SupervisorContext, 'store' | 'clock'>,
): Promise<void> {
  const { store, clock } = context;
  const now = clock.now();
  for (const run of await overdueRuns(store.db, now)) {
    await store.transaction(
      (trx) => recordEnding(trx, { ...rootKeyOf(run), stopReason: 'deadline' }, now),
      { background: true },
    );
  }
  for (const child of await overdueAgents(store.db, now)) {
    await store.transaction(
      (trx) => endChild(trx, { ...keyOf(child), stopReason: 'deadline' }, now),
      { background: true },
    );
  }
  for (const agent of await activeAgents(store.db)) {
    const { maxActiveMs } = budgetFromJson(agent.execution_budget);
    if (maxActiveMs === undefined || activeMsAt(clockOf(agent), now) <= maxActiveMs) continue;
    const ending = { ...keyOf(agent), stopReason: 'max_seconds' };
    await store.transaction(
      async (trx) => {
        if (agent.parent_instance === null) await recordEnding(trx, ending, now);
        else await endChild(trx, ending, now);
      },
      { background: true },
    );
  }
}
