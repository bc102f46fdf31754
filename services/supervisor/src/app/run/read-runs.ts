import type { RunKey } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { operatorWait } from '../../domain/agent/waiting-for.ts';
import { agentsOf } from '../../store/agent/agents.ts';
import { lastSequences } from '../../store/run/read-timeline.ts';
import { type RunFilter, runsByIds, selectRuns } from '../../store/run/run-lists.ts';
import { loadRun, type RunRow } from '../../store/run/runs.ts';
import { lastSequence } from '../../store/run/timeline.ts';

/** A run and the sequence of its last event; zero when it has none. */
export interface RunView {
  readonly run: RunRow;
  readonly lastSequence: number;
}

type Reader = Pick<SupervisorContext, 'store'>;

/**
 * Reads a run of a tenant. Runs of other tenants are reported as not found (SYS-6).
 * @throws NotFoundError RUN_NOT_FOUND
 */
export async function readRun(
  context: Reader,
  key: RunKey,
): Promise<RunView & { readonly waitingDetail: string | undefined }> {
  const run = await loadRun(context.store.db, key);
  const waitingDetail = run.ended_at === null ? await operatorWaitOf(context, key) : undefined;
  return { ...(await viewRun(context, run)), waitingDetail };
}

/** Why the run waits for an operator; undefined when it does not. */
async function operatorWaitOf({ store }: Reader, key: RunKey): Promise<string | undefined> {
  for (const agent of await agentsOf(store.db, key)) {
    const wait = agent.ended_at === null ? operatorWait(agent) : undefined;
    if (wait !== undefined) return wait;
  }
  return undefined;
}

/** Reads the sequence of the last event of a run. */
export async function viewRun({ store }: Reader, run: RunRow): Promise<RunView> {
  const key = { tenant: run.tenant, runId: run.run_id };
  return { run, lastSequence: await lastSequence(store.db, key) };
}

/** Reads runs of a tenant by their ids, oldest change first. */
export async function readRuns(
  { store }: Reader,
  tenant: string,
  runIds: readonly string[],
): Promise<RunView[]> {
  const runs = await runsByIds(store.db, tenant, runIds);
  const sequences = await lastSequences(store.db, tenant, runIds);
  return runs
    .sort((left, right) => left.changed_at.getTime() - right.changed_at.getTime())
    .map((run) => ({ run, lastSequence: sequences.get(run.run_id) ?? 0 }));
}

/** Reads the runs of a page, newest first unless requested otherwise. */
export async function listRuns({ store }: Reader, filter: RunFilter): Promise<RunView[]> {
  const runs = await selectRuns(store.db, filter);
  const ids = runs.map((run) => run.run_id);
  const sequences = await lastSequences(store.db, filter.tenant, ids);
  return runs.map((run) => ({ run, lastSequence: sequences.get(run.run_id) ?? 0 }));
}
