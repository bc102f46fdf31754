import { HistoryRetention, type RunKey } from '@writ/kernel';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import type { RunResult } from '../../domain/result/run-result.ts';
import { withheldAction, withheldResult } from '../../domain/result/withhold.ts';
import { purgeAgents } from '../agent/agents.ts';
import { callKeyOf, decisionsOf, saveDecision } from '../review/decisions.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';
import { type RunRow, saveRun } from './runs.ts';

/** Ended runs whose retention requires the deletion of their content (SUP-4), at most `limit`. */
export async function runsToPurge(
  db: SupervisorReader,
  endedBy: Date,
  limit: number,
): Promise<RunRow[]> {
  return await db
    .selectFrom('runs')
    .selectAll()
    .where('retention', 'in', [HistoryRetention.NONE, HistoryRetention.RUN])
    .where('purged_at', 'is', null)
    .where('ended_at', '<=', endedBy)
    .orderBy('ended_at')
    .limit(limit)
    .execute();
}

/**
 * Deletes the content of a run's rows except its timeline: goal, arguments, answers, observations, facts, comments.
 * Ids, digests, names, states and totals remain (SUP-4).
 */
export async function purgeRun(trx: SupervisorTransaction, run: RunRow, at: Date): Promise<void> {
  const key: RunKey = { tenant: run.tenant, runId: run.run_id };
  for (const row of await decisionsOf(trx, key)) {
    await saveDecision(trx, callKeyOf(row), {
      raw_text: null,
      action: withheldJson(row.action),
      revised_action: withheldJson(row.revised_action),
      executed_action: withheldJson(row.executed_action),
      facts_before: null,
      facts_after: null,
    });
  }
  const ofRun = { tenant: key.tenant, run_id: key.runId };
  const approvals = await trx
    .selectFrom('approvals')
    .select(['approval_id', 'action', 'executed_action'])
    .where(({ and }) => and(ofRun))
    .execute();
  for (const { approval_id, action, executed_action } of approvals) {
    await trx
      .updateTable('approvals')
      .set({
        action: withheldJson(action) ?? action,
        executed_action: withheldJson(executed_action),
        comment: null,
        basis: null,
      })
      .where('approval_id', '=', approval_id)
      .execute();
  }
  await trx
    .updateTable('receipts')
    .set({ claims: '{}', observation: null })
    .where(({ and }) => and(ofRun))
    .execute();
  await purgeAgents(trx, key);
  await trx
    .deleteFrom('facts')
    .where(({ and }) => and(ofRun))
    .execute();
  await saveRun(trx, key, {
    goal: '',
    data_json: '',
    result: run.result && JSON.stringify(withheldResult(JSON.parse(run.result) as RunResult)),
    purged_at: at,
  });
}

function withheldJson(json: string | null): string | null {
  const action = actionFrom(json);
  return action === undefined ? null : JSON.stringify(withheldAction(action));
}
