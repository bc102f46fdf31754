import {
  type ExecutionBudget,
  omitUndefined,
  PreconditionError,
  type RunKey,
  UnavailableError,
} from '@writ/kernel';
import { budgetFromJson, budgetToJson } from '../../domain/manifest/manifest-json.ts';
import { loadAgent, saveAgent } from '../../store/agent/agents.ts';
import { loadRun, saveRun } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import type { EventScope } from '../../wire/hook-fields.ts';
import { rootRefOf } from '../../wire/supervision.ts';

/**
 * Checks that the caps of a run can be set: its tab is open.
 * @throws NotFoundError RUN_NOT_FOUND; PreconditionError RUN_ENDED; UnavailableError AGENT_NOT_DELIVERED
 */
export async function assertBudgetChangeable(
  trx: SupervisorTransaction,
  key: RunKey,
): Promise<void> {
  const { state, ended_at } = await loadRun(trx, key);
  const metadata = { run_id: key.runId };
  if (ended_at !== null || state === 'ENDING') {
    const sentence = `Run ${key.runId} has ended; caps can be set only while the run is in progress.`;
    throw new PreconditionError('RUN_ENDED', sentence, metadata);
  }
  // The order that starts the run opens the tab. A retry of that order must send the same caps under the same request
  // id, so the caps must not change before the tab is open.
  if (state === 'PENDING') {
    const sentence = `Run ${key.runId} is being started; retry.`;
    throw new UnavailableError('AGENT_NOT_DELIVERED', sentence, metadata);
  }
}

/**
 * Stores the caps that the meter enforces for a run: GetRun returns them, and they limit the budgets of later children
 * of the root. Time limits are unchanged. Returns the scope of the event to emit; undefined if the run has ended.
 */
export async function recordRunCaps(
  trx: SupervisorTransaction,
  key: RunKey,
  caps: ExecutionBudget,
): Promise<EventScope | undefined> {
  const run = await loadRun(trx, key);
  if (run.ended_at !== null) return undefined;
  const root = { ...key, instance: run.root_instance };
  const agent = await loadAgent(trx, root);
  const withCaps = (stored: string): string => {
    const { deadlineMs, maxActiveMs } = budgetFromJson(stored);
    return budgetToJson({
      ...caps,
      ...omitUndefined({ deadlineMs, maxActiveMs }),
    });
  };
  await saveRun(trx, key, { run_budget: withCaps(run.run_budget) });
  await saveAgent(trx, root, { execution_budget: withCaps(agent.execution_budget) });
  return { run, agent: rootRefOf(run) };
}
