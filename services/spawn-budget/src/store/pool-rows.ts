import { DataLossError, isPriority } from '@writ/kernel';
import type { Selectable } from 'kysely';
import type { Member, Pool, SlotState } from '../domain/pool/pool.ts';
import type { MembersTable, PoolsTable } from './schema.ts';
import type { PoolKey } from './spawn-store.ts';

type PoolRow = Selectable<PoolsTable>;
type MemberRow = Selectable<MembersTable>;

/** A pool as it is stored, with what only the store cares for. */
export interface StoredPool extends PoolKey {
  readonly pool: Pool;
  /** Made anew by every write, so that a copy is known to be the present. */
  readonly stamp: string;
  /** The request that opened it, and the digest of what it asked for (SB-9). */
  readonly requestId: string;
  readonly requestDigest: string;
  readonly traceparent: string;
  readonly openedAt: Date;
  readonly closedAt: Date | null;
}

const STATES: ReadonlySet<string> = new Set<SlotState>([
  'active',
  'suspended',
  'paused',
  'waiting',
  'released',
]);

/** The pool of a row and its members. */
export function toPool(row: PoolRow, members: readonly MemberRow[]): StoredPool {
  return {
    tenant: row.tenant,
    runId: row.run_id,
    pool: {
      budget: {
        maxAgents: row.max_agents,
        allowPreempt: row.allow_preempt,
        ...(row.max_total_spawns === null ? {} : { maxTotalSpawns: Number(row.max_total_spawns) }),
        ...(row.max_depth === null ? {} : { maxDepth: Number(row.max_depth) }),
      },
      root: row.root,
      ...(row.deadline_at === null ? {} : { deadline: row.deadline_at.getTime() }),
      closed: row.closed_at !== null,
      members: new Map(members.map((member) => [member.instance, toMember(member)])),
      sequence: Number(row.sequence),
      totalSpawns: Number(row.total_spawns),
      totalPauses: Number(row.total_pauses),
      totalRefusals: Number(row.total_refusals),
    },
    stamp: row.stamp,
    requestId: row.request_id,
    requestDigest: row.request_digest,
    traceparent: row.traceparent,
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
    opened_at: stored.openedAt,
    closed_at: stored.closedAt,
  };
}

/** The row of a member. */
export function fromMember({ tenant, runId }: PoolKey, member: Member): MemberRow {
  const { agent, parent, line, expiresAt } = member;
  return {
    tenant,
    run_id: runId,
    instance: agent.instance,
    name: agent.name,
    parent_instance: parent?.instance ?? null,
    parent_name: parent?.name ?? null,
    depth: BigInt(member.depth),
    priority: member.priority,
    state: member.state,
    acquired: BigInt(member.order),
    line: line === undefined ? null : BigInt(line),
    expires_at: expiresAt === undefined ? null : new Date(expiresAt),
    epoch: member.epoch,
    acquired_at: new Date(member.acquiredAt),
  };
}

/**
 * The agent of a row.
 * @throws DataLossError INVALID_POOL_MEMBER for a row that says what no agent can be
 */
export function toMember(row: MemberRow): Member {
  const { priority, state } = row;
  if (!isPriority(priority) || !isState(state))
    throw new DataLossError(
      'INVALID_POOL_MEMBER',
      `The stored state of agent ${row.instance} of run ${row.run_id} is damaged.`,
      { run_id: row.run_id, agent_instance: row.instance },
    );
  const { parent_name: name, parent_instance: instance } = row;
  const parent = name === null || instance === null ? undefined : { name, instance };
  return {
    agent: { name: row.name, instance: row.instance },
    ...(parent === undefined ? {} : { parent }),
    depth: Number(row.depth),
    priority,
    state,
    order: Number(row.acquired),
    ...(row.line === null ? {} : { line: Number(row.line) }),
    ...(row.expires_at === null ? {} : { expiresAt: row.expires_at.getTime() }),
    epoch: row.epoch,
    acquiredAt: row.acquired_at.getTime(),
  };
}

function isState(state: string): state is SlotState {
  return STATES.has(state);
}
