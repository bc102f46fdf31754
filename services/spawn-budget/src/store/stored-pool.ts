import { omitUndefined, type RunKey } from '@writ/kernel';
import type { Pool } from '../domain/pool/pool.ts';
import { toMember } from './members.ts';
import type { MemberRow, PoolRow } from './schema.ts';

/** A pool as it is stored. */
export interface StoredPool extends RunKey {
  readonly pool: Pool;
  /** Changes with every write, so that a cached copy is known to be current. */
  readonly stamp: string;
  /** The request that opened the pool, and the digest of its content (SB-9). */
  readonly requestId: string;
  readonly requestDigest: string;
  readonly traceparent: string;
  /** Session of the run, for events. */
  readonly sessionId: string;
  readonly openedAt: Date;
  readonly closedAt: Date | null;
}

/** Converts the row of a pool and the rows of its members to a pool. */
export function toPool(row: PoolRow, memberRows: readonly MemberRow[]): StoredPool {
  return {
    tenant: row.tenant,
    runId: row.run_id,
    pool: {
      budget: {
        maxAgents: row.max_agents,
        allowPreempt: row.allow_preempt,
        ...omitUndefined({
          maxTotalSpawns: numberOf(row.max_total_spawns),
          maxDepth: numberOf(row.max_depth),
        }),
      },
      root: row.root,
      ...omitUndefined({ deadline: row.deadline_at?.getTime() }),
      closed: row.closed_at !== null,
      members: new Map(memberRows.map((member) => [member.instance, toMember(member)])),
      sequence: Number(row.sequence),
      totalSpawns: Number(row.total_spawns),
      totalPauses: Number(row.total_pauses),
      totalRefusals: Number(row.total_refusals),
    },
    stamp: row.stamp,
    requestId: row.request_id,
    requestDigest: row.request_digest,
    traceparent: row.traceparent,
    sessionId: row.session_id,
    openedAt: row.opened_at,
    closedAt: row.closed_at,
  };
}

/** The row of a pool. */
export function fromPool({ pool, ...stored }: StoredPool): PoolRow {
  const { budget, deadline } = pool;
  return {
    tenant: stored.tenant,
    run_id: stored.runId,
    stamp: stored.stamp,
    root: pool.root,
    max_agents: budget.maxAgents,
    allow_preempt: budget.allowPreempt,
    max_total_spawns: budget.maxTotalSpawns === undefined ? null : BigInt(budget.maxTotalSpawns),
    max_depth: budget.maxDepth === undefined ? null : BigInt(budget.maxDepth),
    deadline_at: deadline === undefined ? null : new Date(deadline),
    sequence: BigInt(pool.sequence),
    total_spawns: BigInt(pool.totalSpawns),
    total_pauses: BigInt(pool.totalPauses),
    total_refusals: BigInt(pool.totalRefusals),
    request_id: stored.requestId,
    request_digest: stored.requestDigest,
    traceparent: stored.traceparent,
    session_id: stored.sessionId,
    opened_at: stored.openedAt,
    closed_at: stored.closedAt,
  };
}

function numberOf(value: bigint | null): number | undefined {
  return value === null ? undefined : Number(value);
}
