import type { RunKey } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { ChangeAlarm } from '../../store/change/change-alarm.ts';
import { runTopic } from '../../store/change/changes.ts';

/**
 * Looks at rows of a run until there is something to see, for as long as a request may wait; undefined
 * when there never was. What rings is only a hint.
 * @param signal of the caller, who may go away
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
