import type { RunKey } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { loadRun } from '../../store/run/runs.ts';

const DEFAULT_PAGE = 50;

/** One page of log entries. */
export interface LogEntryPage {
  /** Empty for all agents. */
  readonly agentInstance: string;
  readonly pageToken: string;
  /** Zero for the default. */
  readonly pageSize: number;
}

/**
 * Reads the log entries of the agents of a run from the worker (AG-4, AG-5, RT-1).
 * @throws NotFoundError RUN_NOT_FOUND; errors of the worker
 */
export async function listLogEntries(
  { store, peers }: Pick<SupervisorContext, 'store' | 'peers'>,
  run: RunKey,
  { agentInstance, pageToken, pageSize }: LogEntryPage,
  signal: AbortSignal,
) {
  await loadRun(store.db, run);
  const page = { agentInstance, pageToken, pageSize: pageSize === 0 ? DEFAULT_PAGE : pageSize };
  return await peers.agentWorker.listLogEntries({ ...run, ...page }, signal);
}
