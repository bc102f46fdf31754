import { buildResult } from '../../domain/result/build-result.ts';
import { type AgentKey, loadAgent } from '../../store/agent/agents.ts';
import { type RunRow, saveRun } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { resultRecords } from './result-records.ts';

/**
 * Builds the result of a run that is over again, after a receipt or an observation that came late
 * (SV-7, TG-8). The result of a run that lives is built when it ends; of what is deleted, none is
 * (SUP-4).
 */
export async function amendResult(trx: SupervisorTransaction, run: RunRow): Promise<void> {
  if (run.result === null || run.purged_at !== null) return;
  const key: AgentKey = {
    tenant: run.tenant,
    runId: run.run_id,
    instance: run.root_instance,
  };
  const root = await loadAgent(trx, key);
  const result = buildResult(await resultRecords(trx, root));
  await saveRun(trx, key, { result: JSON.stringify(result) });
}
