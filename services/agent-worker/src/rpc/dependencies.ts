import type { Clock } from '@writ/kernel';
import type { AgentKind } from '../domain/agent/manifest.ts';
import type { AgentStatus } from '../domain/agent/state.ts';
import type { WorkerEvents } from '../events.ts';
import type { AgentKey } from '../store/keys.ts';
import type { WorkerStore } from '../store/worker-store.ts';

/** What the worker's handlers work with. */
export interface Dependencies {
  readonly store: WorkerStore;
  readonly clock: Clock;
  readonly events: WorkerEvents;
  /** Says that events were committed whose watchers leave soon, since a run ends. */
  readonly flushEventsSoon: () => void;
  /** Tenants that this worker serves; none given means all (SYS-6). */
  readonly tenants: readonly string[];
  /** Whether this worker can run agents of a kind and name. */
  readonly canRun: (kind: AgentKind, name: string) => boolean;
  readonly agents: {
    /** Says that an agent may have become runnable. */
    nudge(): void;
    /** Aborts an agent that runs in this process. */
    cancel(key: AgentKey): void;
    /** Has an agent that runs in this process start nothing new. */
    park(key: AgentKey): void;
    /** Where an agent that runs in this process stands. */
    statusOf(key: AgentKey): AgentStatus | undefined;
  };
}
