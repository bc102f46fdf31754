import type { AgentKey, AgentKind, Clock, RunKey } from '@writ/kernel';
import type { Delivery } from '../../domain/agent/delivery.ts';
import type { FirstReads } from '../../domain/agent/first-reads.ts';
import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { OwnTime } from '../../domain/agent/peer-time.ts';
import type { AgentStatus } from '../../domain/agent/state.ts';
import type { WorkerEvents } from '../../events.ts';
import type { InsertDelivered } from '../../store/leases.ts';
import type { WorkerStore } from '../../store/worker-store.ts';

/** Dependencies of the use cases and handlers. */
export interface Dependencies {
  readonly store: WorkerStore;
  readonly clock: Clock;
  /** Converts a time on the clock of the supervisor to this process's clock, both in ms since 1970 (BD-3). */
  readonly ownTime: OwnTime;
  readonly events: WorkerEvents;
  /** Flushes committed events soon, because clients stop watching when a run ends. */
  readonly flushEventsSoon: () => void;
  /** Tenants that this worker serves; empty for all (SYS-6). */
  readonly tenants: readonly string[];
  /**
   * Returns the current version of the code of an agent, empty for code without versions; undefined
   * when this worker cannot run agents of this kind and name.
   */
  readonly codeVersionOf: (kind: AgentKind, name: string) => string | undefined;
  /**
   * Checks the settings of a manifest against the modules of this worker.
   * @throws InvalidRequestError naming the setting
   */
  readonly checkSettings: (manifest: AgentManifest) => void;
  /** Reads the data that an agent needs before its first effect, when this worker runs it immediately. */
  readonly readFirst: (delivery: Delivery) => Promise<FirstReads>;
  readonly agents: {
    /**
     * Stores a delivered agent and runs it here, or leaves it to be claimed; returns whether it is
     * new.
     */
    accept(
      delivery: Pick<Delivery, 'slotGrant' | 'message'>,
      insert: InsertDelivered,
    ): Promise<boolean>;
    /** Wakes the claim loop, because an agent may have become runnable. */
    nudge(): void;
    /** Commits the pending operations of the agents of a run in this process. */
    flush(run: RunKey): Promise<void>;
    /** Aborts an agent that runs in this process. */
    cancel(key: AgentKey): void;
    /** Resolves when an agent no longer runs in this process, or after `ms` milliseconds. */
    untilReleased(key: AgentKey, ms: number): Promise<void>;
    /** Stops an agent that runs in this process from starting new operations. */
    park(key: AgentKey): void;
    /** Returns the status of an agent that runs in this process. */
    statusOf(key: AgentKey): AgentStatus | undefined;
  };
}
