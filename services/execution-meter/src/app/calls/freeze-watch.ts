import { StorePoller } from '@writ/store';
import type { MeterContext } from '../../context.ts';
import { frozenError, scopesOver } from '../../domain/freeze.ts';
import { freezesAmong } from '../../store/freezes.ts';
import type { ModelCalls } from './model-calls.ts';

/** Topic that notifies other replicas of a freeze. */
export const FREEZES = 'freezes';

const POLL_MS = 500;

/** Aborts calls in flight in this process when another replica records a freeze (SUP-8, SV-9). */
export function watchFreezes({ store, telemetry }: MeterContext, calls: ModelCalls): StorePoller {
  return new StorePoller({
    replicas: store.replicas,
    topic: FREEZES,
    intervalMs: POLL_MS,
    isNeeded: () => calls.callers().length > 0,
    poll: async () => {
      const freezes = await freezesAmong(store.db, calls.callers());
      if (freezes.size === 0) return;
      for (const call of calls.inFlight({})) {
        const scope = scopesOver(call.request).find((text) => freezes.has(text));
        const freeze = scope === undefined ? undefined : freezes.get(scope);
        if (freeze !== undefined) call.abort(frozenError(freeze));
      }
    },
    onError: (error) => telemetry.log.warn({ err: error }, 'failed to read freezes; retrying'),
  });
}
