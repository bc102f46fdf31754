import { HistoryRetention, type RunKey } from '@writ/kernel';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import type { RunResult } from '../../domain/result/run-result.ts';
import { withheldAction, withheldResult } from '../../domain/result/withhold.ts';
import { type AgentRow, keyOf, purgeAgents, saveAgent } from '../agent/agents.ts';
import { callKeyOf, decisionsOf, saveDecision } from '../review/decisions.ts';
import { deleteFacts } from '../review/facts.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';
import { loadRun, type RunRow, saveRun } from './runs.ts';

/** A position in the order in which ended runs are purged. */
export type PurgePosition = Pick<RunRow, 'tenant' | 'run_id' | 'ended_at'>;

/** The position before all runs. */
export const FIRST_TO_PURGE: PurgePosition = { tenant: '', run_id: '', ended_at: new Date(0) };

/** A page of ended runs. */
export interface PurgePage {
  /** Latest end of these runs. */
  readonly endedBy: Date;
  readonly after: PurgePosition;
  readonly limit: number;
}

/** Returns a page of the ended runs whose retention requires the deletion of their content, by their end (SUP-4). */
export async function runsToPurge(
  db: SupervisorReader,
  { endedBy, after: { tenant, run_id, ended_at }, limit }: PurgePage,
): Promise<RunRow[]> {
  return await db
    .selectFrom('runs')
    .selectAll()
    .where('retention', 'in', [HistoryRetention.NONE, HistoryRetention.RUN])
    .where('purged_at', 'is', null)
    .where('ended_at', '<=', endedBy)
    .where((run) =>
      run(run.refTuple('ended_at', 'tenant', 'run_id'), '>', run.tuple(ended_at, tenant, run_id)),
    )
    .orderBy('ended_at')
    .orderBy('tenant')
    .orderBy('run_id')
    .limit(limit)
    .execute();
}

/**
 * Returns a page of the ended runs with permanent retention that have agents whose own retention requires the deletion
 * of their content, by tenant and id (SUP-4).
 */
export async function runsWithAgentsToPurge(
  db: SupervisorReader,
  { endedBy, after, limit }: PurgePage,
): Promise<RunRow[]> {
  // The query starts from the agents, so that it reads only their partial index.
  const found = await db
    .selectFrom('agents')
    .innerJoin('runs', (join) =>
      join
        .onRef('runs.tenant', '=', 'agents.tenant')
        .onRef('runs.run_id', '=', 'agents.run_id')
        .on('runs.retention', '=', HistoryRetention.PERMANENT)
        .on('runs.ended_at', '<=', endedBy),
    )
    .select(['agents.tenant', 'agents.run_id'])
    .distinct()
    .where('purge_pending', 'is not', null)
    .where((agent) =>
      agent(
        agent.refTuple('agents.tenant', 'agents.run_id'),
        '>',
        agent.tuple(after.tenant, after.run_id),
      ),
    )
    .orderBy('agents.tenant')
    .orderBy('agents.run_id')
    .limit(limit)
    .execute();
  const runs: RunRow[] = [];
  for (const { tenant, run_id: runId } of found) runs.push(await loadRun(db, { tenant, runId }));
  return runs;
}

/**
 * Deletes the content of a run's rows except its timeline: goal, arguments, answers, observations, facts, comments.
 * Ids, digests, names, states and totals remain (SUP-4).
 */
export async function purgeRun(trx: SupervisorTransaction, run: RunRow, at: Date): Promise<void> {
  const key: RunKey = { tenant: run.tenant, runId: run.run_id };
  await purgeCalls(trx, key, () => true);
  await purgeAgents(trx, key);
  await deleteFacts(trx, key);
  await saveRun(trx, key, {
    goal: '',
    data_json: '',
    result: run.result && JSON.stringify(withheldResult(JSON.parse(run.result) as RunResult)),
    purged_at: at,
  });
}

/**
 * Deletes the content of one agent, as {@link purgeRun} does for all agents of a run. The answer of the agent remains
 * if the content of its parent is kept, because the answer is the observation of the parent's delegation. Facts remain,
 * because they belong to the run.
 */
export async function purgeAgent(
  trx: SupervisorTransaction,
  agent: AgentRow,
  isParentKept: boolean,
): Promise<void> {
  const { instance } = agent;
  await purgeCalls(trx, keyOf(agent), (of) => of === instance);
  await saveAgent(trx, keyOf(agent), {
    ...(!isParentKept && { ending_answer: null }),
    ending_detail: null,
    purge_pending: null,
  });
}

/** Deletes the content of decisions, approvals and receipts of the agents that `concerns` selects. */
async function purgeCalls(
  trx: SupervisorTransaction,
  key: RunKey,
  concerns: (instance: string) => boolean,
): Promise<void> {
  const ofRun = { tenant: key.tenant, run_id: key.runId };
  const decisions = (await decisionsOf(trx, key)).filter(({ instance }) => concerns(instance));
  for (const row of decisions) {
    await saveDecision(trx, callKeyOf(row), {
      raw_text: null,
      action: withheldJson(row.action),
      revised_action: withheldJson(row.revised_action),
      executed_action: withheldJson(row.executed_action),
      facts_before: null,
      facts_after: null,
    });
  }
  const approvals = await trx
    .selectFrom('approvals')
    .select(['approval_id', 'instance', 'state', 'action', 'executed_action', 'basis'])
    .where(({ and }) => and(ofRun))
    .execute();
  for (const { approval_id, instance, state, action, executed_action, basis } of approvals) {
    if (!concerns(instance)) continue;
    await trx
      .updateTable('approvals')
      .set({
        action: withheldJson(action) ?? action,
        executed_action: withheldJson(executed_action),
        comment: null,
        // The basis of a withdrawn approval records whether the agent withdrew it.
        basis: state === 'withdrawn' ? basis : null,
      })
      .where('approval_id', '=', approval_id)
      .execute();
  }
  for (const instance of new Set(decisions.map((row) => row.instance))) {
    await trx
      .updateTable('receipts')
      .set({ claims: '{}', observation: null })
      .where(({ and }) => and({ ...ofRun, instance }))
      .execute();
  }
}

function withheldJson(json: string | null): string | null {
  const action = actionFrom(json);
  return action === undefined ? null : JSON.stringify(withheldAction(action));
}
