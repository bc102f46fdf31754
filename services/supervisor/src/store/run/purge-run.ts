import { type AgentKey, HistoryRetention, omitUndefined, type RunKey } from '@writ/kernel';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import type { RunResult } from '../../domain/result/run-result.ts';
import { withheldAction, withheldResult } from '../../domain/result/withhold.ts';
import { type AgentRow, keyOf, purgeAgents, saveAgent } from '../agent/agents.ts';
import { type DecisionRow, saveDecision } from '../review/decisions.ts';
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
 * Deletes the content of a run's rows except its timeline, decisions and approvals: goal, answers, observations, facts.
 * Also deletes the comments of approvals that were stored after {@link purgeCalls}. Ids, digests, names, states and
 * totals remain (SUP-4).
 */
export async function purgeRun(trx: SupervisorTransaction, run: RunRow, at: Date): Promise<void> {
  const key: RunKey = { tenant: run.tenant, runId: run.run_id };
  await purgeReceipts(trx, key);
  await purgeComments(trx, key);
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
  await purgeReceipts(trx, keyOf(agent));
  await purgeComments(trx, keyOf(agent));
  await saveAgent(trx, keyOf(agent), {
    ...(!isParentKept && { ending_answer: null }),
    ending_detail: null,
    purge_pending: null,
  });
}

/** A position among the calls of a run. */
export type CallPosition = Pick<DecisionRow, 'instance' | 'call_id'>;

/** A page of calls. */
export interface CallPage {
  readonly after: CallPosition;
  readonly limit: number;
}

/** The position before all calls. */
export const FIRST_CALL: CallPosition = { instance: '', call_id: '' };

/**
 * Deletes the content of the decisions and approvals of a page of calls.
 * @param agents instances whose calls lose their content; omitted for all agents
 * @returns the position of the last call of the page; undefined after the last page
 */
export async function purgeCalls(
  trx: SupervisorTransaction,
  key: RunKey,
  { after, limit }: CallPage,
  agents?: ReadonlySet<string>,
): Promise<CallPosition | undefined> {
  const ofRun = { tenant: key.tenant, run_id: key.runId };
  const page = await trx
    .selectFrom('decisions')
    .select(['instance', 'call_id', 'raw_text', 'action', 'revised_action', 'executed_action'])
    .select(['facts_before', 'facts_after'])
    .where(({ and }) => and(ofRun))
    .where((row) =>
      row(row.refTuple('instance', 'call_id'), '>', row.tuple(after.instance, after.call_id)),
    )
    .orderBy('instance')
    .orderBy('call_id')
    .limit(limit)
    .execute();
  const concerned = page.filter(({ instance }) => agents?.has(instance) ?? true);
  for (const { instance, call_id: callId, ...content } of concerned) {
    const withheld = {
      raw_text: null,
      action: withheldJson(content.action),
      revised_action: withheldJson(content.revised_action),
      executed_action: withheldJson(content.executed_action),
      facts_before: null,
      facts_after: null,
    };
    if (differs(withheld, content)) {
      await saveDecision(trx, { ...key, instance, callId }, withheld);
    }
  }
  const byAgent = Map.groupBy(concerned, ({ instance }) => instance);
  for (const [instance, calls] of byAgent) {
    await purgeApprovals(
      trx,
      { ...key, instance },
      calls.map(({ call_id }) => call_id),
    );
  }
  const last = page.at(limit - 1);
  return last && { instance: last.instance, call_id: last.call_id };
}

/** Deletes the content of the approvals of calls of an agent. */
async function purgeApprovals(
  trx: SupervisorTransaction,
  { tenant, runId, instance }: AgentKey,
  callIds: readonly string[],
): Promise<void> {
  const approvals = await trx
    .selectFrom('approvals')
    .select(['approval_id', 'state', 'action', 'executed_action', 'comment', 'basis'])
    .where(({ and }) => and({ tenant, run_id: runId, instance }))
    .where('call_id', 'in', callIds)
    .execute();
  for (const { approval_id, state, ...content } of approvals) {
    const { action, executed_action, basis } = content;
    const withheld = {
      action: withheldJson(action) ?? action,
      executed_action: withheldJson(executed_action),
      comment: null,
      // The basis of a withdrawn approval records whether the agent withdrew it.
      basis: state === 'withdrawn' ? basis : null,
    };
    if (!differs(withheld, content)) continue;
    await trx
      .updateTable('approvals')
      .set(withheld)
      .where('approval_id', '=', approval_id)
      .execute();
  }
}

/** Whether a row still has content: after a failed purge, the repeated purge must not rewrite all rows (CO-2). */
function differs<T extends object>(withheld: T, content: T): boolean {
  return (Object.keys(withheld) as (keyof T)[]).some((name) => withheld[name] !== content[name]);
}

/** Deletes the content of the receipts of a run, or of one agent. */
async function purgeReceipts(
  trx: SupervisorTransaction,
  { tenant, runId, instance }: RunKey & { readonly instance?: string },
): Promise<void> {
  await trx
    .updateTable('receipts')
    .set({ claims: '{}', observation: null })
    .where(({ and }) => and(omitUndefined({ tenant, run_id: runId, instance })))
    .execute();
}

/** Deletes the comments of the approvals of a run, or of one agent. */
async function purgeComments(
  trx: SupervisorTransaction,
  { tenant, runId, instance }: RunKey & { readonly instance?: string },
): Promise<void> {
  await trx
    .updateTable('approvals')
    .set({ comment: null })
    .where(({ and }) => and(omitUndefined({ tenant, run_id: runId, instance })))
    .where('comment', 'is not', null)
    .execute();
}

function withheldJson(json: string | null): string | null {
  const action = actionFrom(json);
  return action === undefined ? null : JSON.stringify(withheldAction(action));
}
