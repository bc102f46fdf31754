import type { AgentRef, Priority, SpawnBudget } from '@writ/kernel';

/** The state of an agent in its run's pool. */
export type SlotState =
  /** Holds a slot with a lease. */
  | 'active'
  /** Holds a slot without a lease: the agent sleeps or waits, or it is the root and its lease expired. */
  | 'suspended'
  /** Preempted or demoted; holds no slot and is queued. */
  | 'paused'
  /**
   * Holds no slot because its lease expired. A renewal with the intent `run` or `park` gives it a slot or queues it.
   */
  | 'waiting'
  /** Terminal. */
  | 'released';

/** A reported wait of an agent. */
export interface MemberWait {
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** Names of the signals, any of which wakes the agent; empty if the agent waits only for a timer. */
  readonly signals: readonly string[];
  /** Sequence number of the slot change that began the wait. */
  readonly sequence: number;
}

/** One agent of a pool. Times are milliseconds since the epoch. */
export interface Member {
  readonly agent: AgentRef;
  /** Absent for the root. */
  readonly parent?: AgentRef;
  /** Levels below the root. */
  readonly depth: number;
  readonly priority: Priority;
  readonly state: SlotState;
  /** Order of first acquisition; among equal priorities the lowest is paused first (SB-2). */
  readonly order: number;
  /** Position in the queue among equal priorities, lowest first; absent if not queued. */
  readonly queuePosition?: number;
  /** When the slot expires: the end of the lease, or the run's deadline while suspended. */
  readonly expiresAt?: number;
  /** What the agent waits for, as its worker reported; absent while the agent does not wait (EM-1). */
  readonly wait?: MemberWait;
  /** Highest epoch of a worker's lease on the agent; zero before the first (RT-2). */
  readonly epoch: bigint;
  /** Time of the first acquisition. */
  readonly acquiredAt: number;
}

/** The headcount of one run (SB-1). */
export interface Pool {
  readonly budget: SpawnBudget;
  /** Instance of the root. */
  readonly root: string;
  /** Deadline of the run, milliseconds since the epoch; no lease lasts longer. */
  readonly deadline?: number;
  /** The run has ended; no slot is granted. */
  readonly closed: boolean;
  /** The agents by instance. Released agents may be omitted, except an agent to which the event refers. */
  readonly members: ReadonlyMap<string, Member>;
  /** Last number assigned to a slot change, an acquisition or a queue position. */
  readonly sequence: number;
  /** Number of agents spawned in the run, excluding the root (SB-7). */
  readonly totalSpawns: number;
  readonly totalPauses: number;
  readonly totalRefusals: number;
}

/** A change of an agent's state. */
export interface SlotChange {
  readonly agent: AgentRef;
  readonly from: SlotState;
  readonly to: SlotState;
  /** For a pause, the agent that gets the slot; for a resumption, the agent that had the slot. */
  readonly becauseOf?: AgentRef;
  /** When the lease of the agent expired, if that caused the change. */
  readonly leaseExpiredAt?: number;
  /** `began`: the agent reported a wait, and its state did not change. `ended`: the change ends a wait of the agent. */
  readonly wait?: 'began' | 'ended';
  /** The signals of a wait that began. */
  readonly waitingFor?: readonly string[];
  /** Sequence number of the change in its pool. */
  readonly sequence: number;
}

/** Whether the agent holds a slot (SB-6). */
export function isHolder({ state }: Member): boolean {
  return state === 'active' || state === 'suspended';
}

/** Number of held slots: those of active and suspended agents, the root included; at most `max_agents` (SB-6). */
export function heldSlots(pool: Pool): number {
  let held = 0;
  for (const member of pool.members.values()) if (isHolder(member)) held += 1;
  return held;
}

/** Whether the run is past its deadline at `at`, so that no agent may act. */
export function isPastDeadline(pool: Pool, at: number): boolean {
  return pool.deadline !== undefined && at >= pool.deadline;
}

/**
 * Returns the time until which an agent may act, in milliseconds since the epoch; undefined unless the agent is active.
 * This time is `marginMs` before the end of the lease, because another agent may get the slot when the lease ends. The
 * deadline of the run needs no margin, because no agent gets a slot after it.
 */
export function mayActUntil(pool: Pool, member: Member, marginMs: number): number | undefined {
  if (member.state !== 'active' || member.expiresAt === undefined) return undefined;
  return member.expiresAt === pool.deadline ? member.expiresAt : member.expiresAt - marginMs;
}
