import type { RunKey } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { awaitChange } from '../../store/change/change-alarm.ts';
import { runTopic } from '../../store/change/changes.ts';

/**
 * Repeats `read` after each change of a run until it returns a value; undefined when `childWaitMs` pass first.
 * @param signal of the caller, who may disconnect
 */
export async function awaitRunChange<T>(
  { store, config }: Pick<SupervisorContext, 'store' | 'config'>,
  run: RunKey,
  signal: AbortSignal,
  read: () => Promise<T | undefined>,
): Promise<T | undefined> {
  return await awaitChange({
    changes: store.changes,
    topic: runTopic(run),
    pollMs: config.watchPollMs,
    signal: AbortSignal.any([signal, AbortSignal.timeout(config.childWaitMs)]),
    read,
    isEnough: (value) => value !== undefined,
  });
}
