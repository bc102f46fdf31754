import { StorePoller } from '@writ/store';
import type { Logger } from '@writ/telemetry';
import type { GatewayContext } from '../../context.ts';
import { frozenError, scopesOver } from '../../domain/freeze.ts';
import { freezesSince } from '../../store/freezes.ts';

/** Topic on which replicas notify each other of new freezes. */
export const FREEZES = 'freezes';

const POLL_INTERVAL_MS = 500;
/** Largest clock difference between replicas. */
const MAX_CLOCK_SKEW_MS = 60_000;

/** Cancels the in-flight calls of this process that a freeze order of another replica covers (SV-9). */
export function watchFreezes(
  { store, clock, inFlightCalls }: Pick<GatewayContext, 'store' | 'clock' | 'inFlightCalls'>,
  log: Logger,
): StorePoller {
  return new StorePoller({
    replicas: store.replicas,
    topic: FREEZES,
    intervalMs: POLL_INTERVAL_MS,
    isNeeded: () => inFlightCalls.any,
    poll: async () => {
      // A call checks older freezes when it begins; this process may have been paused since then.
      const began = inFlightCalls.earliestStart ?? clock.now();
      const since = new Date(began.getTime() - MAX_CLOCK_SKEW_MS);
      const freezes = await freezesSince(store.db, since);
      if (freezes.length === 0) return;
      inFlightCalls.cancelWhere((key) => {
        const scopes = scopesOver(key);
        const freeze = freezes.find(({ scope }) => scopes.includes(scope));
        return freeze && frozenError(freeze);
      });
    },
    onError: (error) => log.warn({ err: error }, 'failed to read freezes; retrying'),
  });
}
