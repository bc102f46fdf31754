import type { AgentRef, Priority, SpawnBudget } from '@writ/kernel';

/** Where an agent stands in its run's headcount. */
export type SlotState =
  /** Holds a slot under a running lease. */
  | 'active'
  /** Holds a slot without a lease: it sleeps or waits. */
  | 'suspended'
  /** Holds no slot: it was paused, and is in line. */
  | 'paused'
  /** Holds no slot: its lease lapsed; in line once somebody has picked its run up again. */
  | 'waiting'
  /** Terminal: released. */
  | 'released';

/** One agent of a pool. Times are milliseconds since the epoch. */
export interface Member {
  readonly agent: AgentRef;
  /** Absent at the root. */
  readonly parent?: AgentRef;
  /** Levels below the root. */
  readonly depth: number;
  readonly priority: Priority;
  readonly state: SlotState;
  /** Rises with each first acquisition: of equals, the lowest is paused first (SB-2). */
  readonly order: number;
  /** Place in line, the lowest first among equals; absent when it is not in line. */
  readonly line?: number;
  /** When it loses its slot: the lease's end, or the run's deadline while suspended. */
  readonly expiresAt?: number;
  /** Highest epoch seen of a worker's lease on the agent; zero before a worker has one (RT-2). */
  readonly epoch: bigint;
  /** When it acquired its slot first. */
  readonly acquiredAt: number;
}

/** The headcount of one run (SB-1). */
export interface Pool {
  readonly budget: SpawnBudget;
  /** Instance of the root. */
  readonly root: string;
  /** When the run must be over, milliseconds since the epoch; nobody holds a lease past it. */
  readonly deadline?: number;
  /** The run is over; nothing is granted. */
  readonly closed: boolean;
  /** By instance. Released ones may be left out, but for those that an event names. */
  readonly members: ReadonlyMap<string, Member>;
  /** Last number given to an acquisition, a pause or a place in line. */
  readonly sequence: number;
  /** Agents ever spawned, the root not counted (SB-7). */
  readonly totalSpawns: number;
  readonly totalPauses: number;
  readonly totalRefusals: number;
}

/** That an agent moved from one state to another. */
export interface SlotChange {
  readonly agent: AgentRef;
  readonly from: SlotState;
  readonly to: SlotState;
  /** The agent that it was paused for, or whose slot it got. */
  readonly becauseOf?: AgentRef;
  /** When its lease ended because nobody renewed it; absent for every other move. */
  readonly leaseExpiredAt?: number;
  /** Number of the change within its pool. */
  readonly sequence: number;
}

/** Whether the agent holds a slot (SB-6). */
export function isHolder({ state }: Member): boolean {
  return state === 'active' || state === 'suspended';
}

/** Slots in use: root, active and suspended; never above `max_agents` (SB-6). */
export function heldSlots(pool: Pool): number {
  let held = 0;
  for (const member of pool.members.values()) if (isHolder(member)) held += 1;
  return held;
}

/** Agents in line for a slot, first in line first: highest priority, then oldest in line (SB-4). */
export function inLine(pool: Pool): Member[] {
  const waiting = [...pool.members.values()].filter(({ line }) => line !== undefined);
  return waiting.sort((a, b) => b.priority - a.priority || (a.line ?? 0) - (b.line ?? 0));
}

/** Whether the run is past its deadline at `at`, so that nobody may act. */
export function isOver(pool: Pool, at: number): boolean {
  return pool.deadline !== undefined && at >= pool.deadline;
}

/**
 * Until when an agent may act, milliseconds since the epoch; undefined unless it is active. That is
 * `marginMs` before its lease ends: then its slot goes to another, who must not meet it still acting.
 * The run's deadline gives the slot to nobody, so it has no margin.
 */
export function mayActUntil(pool: Pool, member: Member, marginMs: number): number | undefined {
  if (member.state !== 'active' || member.expiresAt === undefined) return undefined;
  return member.expiresAt === pool.deadline ? member.expiresAt : member.expiresAt - marginMs;
}
