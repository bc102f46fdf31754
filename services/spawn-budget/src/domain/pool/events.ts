import type { AgentRef, Priority, SpawnBudget } from '@writ/kernel';
import type { Member, Pool, SlotChange } from './pool.ts';

/** What a worker requests for an agent (SB-8). */
export type RenewIntent =
  /** The agent runs: extend the lease, or acquire a slot again. */
  | 'run'
  /** The agent is suspended: keep the slot without a lease. */
  | 'suspend'
  /**
   * The agent is parked: report whether it has a slot again; after an expired lease, queue it or give it a free slot.
   */
  | 'park';

/** Opens a run's pool with the root in its first slot. */
export interface OpenEvent {
  readonly root: AgentRef;
  readonly priority: Priority;
  readonly budget: SpawnBudget;
  readonly deadline?: number;
}

/** Asks for a slot. */
export interface AcquireEvent {
  readonly type: 'acquire';
  readonly agent: AgentRef;
  readonly parent: AgentRef;
  readonly depth: number;
  readonly priority: Priority;
}

/** Returns a slot. */
export interface ReleaseEvent {
  readonly type: 'release';
  readonly instance: string;
}

/** Extends, suspends or reacquires a lease. */
export interface RenewEvent {
  readonly type: 'renew';
  readonly instance: string;
  readonly epoch: bigint;
  readonly intent: RenewIntent;
  /** Signals that a suspended agent waits for; omitted if there are none, and for other intents. */
  readonly waitingFor?: readonly string[];
}

/** Changes the priority of a live agent. */
export interface ReprioritizeEvent {
  readonly type: 'reprioritize';
  readonly instance: string;
  readonly priority: Priority;
}

/** An event of a pool. Every event first ends expired leases; `expire` does only that. */
export type PoolEvent =
  | AcquireEvent
  | ReleaseEvent
  | RenewEvent
  | ReprioritizeEvent
  | { readonly type: 'expire' }
  | { readonly type: 'close' };

/** The time of an event, and the duration of a lease granted by it. Milliseconds. */
export interface EventTime {
  readonly at: number;
  readonly leaseMs: number;
}

/** The cap that refused an acquire, and the reason (SB-2, SB-7). */
export interface Refusal {
  readonly cap: 'max_agents' | 'max_total_spawns' | 'max_depth';
  readonly why: 'full' | 'preemption_off' | 'no_lower_priority' | 'spawns_used_up' | 'too_deep';
  readonly used: number;
  readonly limit: number;
  /** One sentence that names the cap and the reason. */
  readonly sentence: string;
}

/** The outcome of an event; fields that do not apply are absent. */
export interface Outcome {
  /** The affected agent after the event. */
  readonly member?: Member;
  /** The acquire was refused; the refusal is counted, so the pool changed. */
  readonly refusal?: Refusal;
  /** The renewal was rejected; the agent did not change. */
  readonly renewal?: 'UNKNOWN_AGENT' | 'STALE_EPOCH';
  /** Whether a member was released. */
  readonly released?: boolean;
}

/** A pool after an event. */
export interface Reduced {
  readonly pool: Pool;
  readonly outcome: Outcome;
  /** The slot changes in order, including those of the affected agent. */
  readonly changes: readonly SlotChange[];
}
