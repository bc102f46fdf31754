import type { RunKey } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { awaitChange } from '../../store/change/change-alarm.ts';
import { runTopic } from '../../store/change/changes.ts';

/**
 * Calls `read` at once, after each change of a run, and at an interval, until `read` returns a value; returns this
 * value. Returns undefined after `childWaitMs`, or when `signal` aborts.
 * @param signal aborts the wait when the caller disconnects
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
