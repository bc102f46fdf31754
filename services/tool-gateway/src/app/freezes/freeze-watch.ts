import { StorePoller } from '@writ/store';
import type { Logger } from '@writ/telemetry';
import type { GatewayContext } from '../../context.ts';
import { frozenError, scopesOver } from '../../domain/freeze.ts';
import { freezesSince } from '../../store/freezes.ts';

/** What other replicas are told by when they have calls under way. */
export const FREEZES = 'freezes';

const LOOK_MS = 500;
/** Replicas' clocks may differ by so much. */
const CLOCKS_APART_MS = 60_000;

/** Calls off what this process has under way when another replica was told to freeze it (SV-9). */
export function watchFreezes(
  { store, clock, inFlightCalls }: Pick<GatewayContext, 'store' | 'clock' | 'inFlightCalls'>,
  log: Logger,
): StorePoller {
  return new StorePoller({
    replicas: store.replicas,
    topic: FREEZES,
    intervalMs: LOOK_MS,
    isNeeded: () => inFlightCalls.any,
    poll: async () => {
      // What was frozen before was seen when they began; this process may have been stopped since.
      const began = inFlightCalls.earliestStart ?? clock.now();
      const since = new Date(began.getTime() - CLOCKS_APART_MS);
      const freezes = await freezesSince(store.db, since);
      if (freezes.length === 0) return;
      inFlightCalls.cancelWhere((key) => {
        const scopes = scopesOver(key);
        const freeze = freezes.find(({ scope }) => scopes.includes(scope));
        return freeze && frozenError(freeze);
      });
    },
    onError: (error) => log.warn({ err: error }, 'Freezes cannot be read; trying again.'),
  });
}
