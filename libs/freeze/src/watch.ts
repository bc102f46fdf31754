import {
  type AgentKey,
  type CallKey,
  type PreconditionError,
  type Scope,
  scopesOver,
} from '@writ/kernel';
import { type SharedStore, StorePoller } from '@writ/store';
import type { Logger } from '@writ/telemetry';
import { frozenError } from './order.ts';
import { type FreezesDatabase, freezesOverAny } from './store.ts';

/** A call of a frozen scope that is still in flight. */
export interface FrozenCall extends CallKey {
  /** Tool or model alias. */
  readonly target: string;
  readonly startedAt: Date;
}

/** The calls in flight in this process. */
export interface FreezableCalls {
  /** Returns the agents with calls in flight; an agent can occur several times. */
  callers(): readonly AgentKey[];
  /** Aborts the calls of the agents for which `reasonOf` returns an error. */
  abort(reasonOf: (agent: AgentKey) => PreconditionError | undefined): void;
  /** Waits up to `ms` milliseconds until the calls in flight within the scope have ended. */
  settle(scope: Scope, ms: number): Promise<unknown>;
  /** Returns the calls in flight within the scope. */
  list(scope: Scope): readonly FrozenCall[];
}

/** Topic on which replicas notify each other of new freezes. */
export const FREEZES_TOPIC = 'freezes';

const POLL_MS = 500;

/**
 * Aborts the calls in flight of this process when another replica records an order that covers them (SUP-8,
 * SV-9). Notifications can be lost, so it also polls while calls are in flight.
 */
export function watchFreezes<DB extends FreezesDatabase>({
  store: { urgentDb, replicas },
  calls,
  log,
}: {
  readonly store: SharedStore<DB>;
  readonly calls: Pick<FreezableCalls, 'callers' | 'abort'>;
  readonly log: Logger;
}): StorePoller {
  return new StorePoller({
    replicas,
    topic: FREEZES_TOPIC,
    intervalMs: POLL_MS,
    isNeeded: () => calls.callers().length > 0,
    poll: async () => {
      const freezes = await freezesOverAny(urgentDb, calls.callers());
      if (freezes.length === 0) return;
      calls.abort((agent) => {
        const scopes: readonly string[] = scopesOver(agent);
        const freeze = freezes.find(({ scope }) => scopes.includes(scope));
        return freeze && frozenError(freeze);
      });
    },
    onError: (error) => log.warn({ err: error }, 'failed to read freezes; retrying'),
  });
}
