import type { RunKey } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { ChangeAlarm } from '../../store/change/change-alarm.ts';
import { runTopic } from '../../store/change/changes.ts';

/**
 * Repeats `read` after each change of a run until it returns a value; undefined when `childWaitMs` pass first.
 * Change notifications may be lost, so it also polls.
 * @param signal of the caller, who may disconnect
 */
export async function awaitRunChange<T>(
  { store, config }: Pick<SupervisorContext, 'store' | 'config'>,
  run: RunKey,
  signal: AbortSignal,
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const enough = AbortSignal.any([signal, AbortSignal.timeout(config.childWaitMs)]);
  const changed = new ChangeAlarm(enough);
  const unsubscribe = store.changes.subscribe(runTopic(run), () => changed.ring());
  try {
    while (true) {
      const seen = await look();
      if (seen !== undefined || enough.aborted) return seen;
      await changed.wait(config.watchPollMs);
    }
  } finally {
    unsubscribe();
    changed.close();
  }
}
