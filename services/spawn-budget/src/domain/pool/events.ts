import type { AgentRef, Priority, SpawnBudget } from '@writ/kernel';
import type { Member, Pool, SlotChange } from './pool.ts';

/** What a worker wants for an agent (SB-8). */
export type RenewIntent =
  /** It runs: keep the lease, or get a slot again. */
  | 'run'
  /** It sleeps or waits: keep the slot without a lease. */
  | 'suspend'
  /** It is parked: say whether its slot is back. */
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

/** Keeps, gives up or takes back a lease. */
export interface RenewEvent {
  readonly type: 'renew';
  readonly instance: string;
  readonly epoch: bigint;
  readonly intent: RenewIntent;
}

/** Changes a live agent's weight. */
export interface ReprioritizeEvent {
  readonly type: 'reprioritize';
  readonly instance: string;
  readonly priority: Priority;
}

/** Something that happens to a pool. Every event lets leases lapse first; `expire` does only that. */
export type PoolEvent =
  | AcquireEvent
  | ReleaseEvent
  | RenewEvent
  | ReprioritizeEvent
  | { readonly type: 'expire' }
  | { readonly type: 'close' };

/** When an event happens, and how long a lease runs from then. Milliseconds. */
export interface EventTime {
  readonly at: number;
  readonly leaseMs: number;
}

/** Which cap refused an acquire, and why (SB-2, SB-7). */
export interface Refusal {
  readonly cap: 'max_agents' | 'max_total_spawns' | 'max_depth';
  readonly why: 'full' | 'preemption_off' | 'nobody_below' | 'spawns_used_up' | 'too_deep';
  readonly used: number;
  readonly limit: number;
  /** One sentence that names the cap and says why. */
  readonly sentence: string;
}

/** What came of an event; what is absent does not apply to it. */
export interface Outcome {
  /** The agent concerned, as it stands now. */
  readonly member?: Member;
  /** The acquire was refused, which counts: the pool changed. */
  readonly refusal?: Refusal;
  /** The renewal was refused; nothing changed for this agent. */
  readonly renewal?: 'UNKNOWN_AGENT' | 'STALE_EPOCH';
  /** Whether there was something to release. */
  readonly released?: boolean;
}

/** A pool after an event. */
export interface Reduced {
  readonly pool: Pool;
  readonly outcome: Outcome;
  /** Who moved, the agent concerned included, in the order in which it happened. */
  readonly changes: readonly SlotChange[];
}
