import type { OutboxTable } from '@writ/store';

/** One run's pool. */
export interface PoolsTable {
  readonly tenant: string;
  readonly run_id: string;
  /** Made anew by every write to the pool or to one of its agents. */
  readonly stamp: string;
  /** Instance; empty when the run was closed before its pool was opened. */
  readonly root: string;
  readonly max_agents: number;
  readonly allow_preempt: boolean;
  /** Null = unlimited, as with the next. */
  readonly max_total_spawns: bigint | null;
  readonly max_depth: bigint | null;
  readonly deadline_at: Date | null;
  readonly sequence: bigint;
  readonly total_spawns: bigint;
  readonly total_pauses: bigint;
  readonly total_refusals: bigint;
  /** The request that opened it, and what it asked for. */
  readonly request_id: string;
  readonly request_digest: string;
  /** Trace of the opening, for what no call causes (SYS-1). */
  readonly traceparent: string;
  readonly opened_at: Date;
  readonly closed_at: Date | null;
}

/** One agent of a pool. */
export interface MembersTable {
  readonly tenant: string;
  readonly run_id: string;
  readonly instance: string;
  readonly name: string;
  readonly parent_instance: string | null;
  readonly parent_name: string | null;
  readonly depth: bigint;
  /** The weight (SUP-3). */
  readonly priority: number;
  readonly state: string;
  /** Order of first acquisition. */
  readonly acquired: bigint;
  /** Place in line; null when it is not in line. */
  readonly line: bigint | null;
  readonly expires_at: Date | null;
  readonly epoch: bigint;
  readonly acquired_at: Date;
}

/** What a mutating call was answered, so that a repeat is answered the same (SB-9). */
export interface RequestsTable {
  readonly tenant: string;
  readonly run_id: string;
  readonly instance: string;
  readonly rpc: string;
  readonly request_id: string;
  readonly digest: string;
  /** JSON. */
  readonly answer: string;
  readonly answered_at: Date;
}

/** Everything that spawn-budget remembers. */
export interface SpawnDatabase {
  pools: PoolsTable;
  members: MembersTable;
  requests: RequestsTable;
  outbox: OutboxTable;
}
