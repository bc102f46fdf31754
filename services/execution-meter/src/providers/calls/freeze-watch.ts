import { StorePoller } from '@writ/store';
import type { MeterContext } from '../../context.ts';
import { frozenError, scopesOver } from '../../domain/freeze.ts';
import { freezesAmong } from '../../store/freezes.ts';
import type { ModelCalls } from './model-calls.ts';

/** What other replicas are told by when calls are to be aborted. */
export const FREEZES = 'freezes';

const LOOK_MS = 500;

/** Aborts the calls of this process that another replica was told to freeze (SUP-8, SV-9). */
export function watchFreezes({ store, telemetry }: MeterContext, calls: ModelCalls): StorePoller {
  return new StorePoller({
    replicas: store.replicas,
    topic: FREEZES,
    intervalMs: LOOK_MS,
    isNeeded: () => calls.callers().length > 0,
    poll: async () => {
      const freezes = await freezesAmong(store.db, calls.callers());
      if (freezes.size === 0) return;
      for (const flight of calls.inFlight({})) {
        const scope = scopesOver(flight.ask).find((text) => freezes.has(text));
        const freeze = scope === undefined ? undefined : freezes.get(scope);
        if (freeze !== undefined) flight.abort(frozenError(freeze));
      }
    },
    onError: (error) => telemetry.log.warn({ err: error }, 'Freezes cannot be read; trying again.'),
  });
}
