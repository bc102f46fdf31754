import type { AgentKey } from '@writ/kernel';
import { sql } from 'kysely';
import { reduceAgent } from '../domain/agent/state.ts';
import { type AgentRow, statusColumns, statusOf } from './agents.ts';
import { agentColumns, keyOf } from './keys.ts';
import type { LeaseTerms } from './leases.ts';
import { pauseTimersWhileParked } from './timers.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/**
 * Returns agents that can be claimed at `at`: runnable agents without a live lease, and suspended or parked agents that
 * are due. `tenants` is empty for all tenants (SYS-6).
 */
export async function findRunnable(
  db: WorkerReader,
  at: Date,
  most: number,
  tenants: readonly string[],
): Promise<AgentKey[]> {
  const agents = db
    .selectFrom('agents')
    .select(['tenant', 'run_id', 'instance'])
    // An expression instead of the column: with the index on the column, the query would scan all inactive agents of a
    // tenant.
    .$if(tenants.length > 0, (query) => query.where(sql`coalesce(tenant, '')`, 'in', tenants))
    .limit(most);
  // A literal, as in the predicate of the partial index: a generic plan with a parameter could not use the index.
  const running = agents.where('state', '=', sql.lit('RUNNING'));
  const free = await running.where('lease_expires_at', 'is', null).orderBy('created_at').execute();
  const expired = await running
    .where('lease_expires_at', '<=', at)
    .orderBy('lease_expires_at')
    .execute();
  const due = await agents
    .where('wake_at', '<=', at)
    .where('lease_expires_at', 'is', null)
    .orderBy('wake_at')
    .execute();
  return [...expired, ...free, ...due].slice(0, most).map(keyOf);
}

/**
 * Claims an agent: increments its epoch and sets the lease. Returns undefined when it can no longer be
 * claimed, for example because another worker has claimed it.
 */
export async function claimAgent(
  trx: WorkerTransaction,
  key: AgentKey,
  { owner, at, expiresAt }: LeaseTerms,
): Promise<AgentRow | undefined> {
  const row = await trx
    .selectFrom('agents')
    .selectAll()
    .where((eb) => eb.and(agentColumns(key)))
    .executeTakeFirst();
  if (row === undefined || (row.lease_expires_at !== null && row.lease_expires_at > at)) {
    return undefined;
  }
  const status = reduceAgent(statusOf(row), { type: 'claimed', at });
  if (status.state !== 'RUNNING') return undefined;
  const { epoch: seen, ...rest } = row;
  const epoch = seen + 1n;
  const changes = {
    ...statusColumns(status, at),
    epoch,
    lease_owner: owner,
    lease_expires_at: expiresAt,
  };
  const { numUpdatedRows } = await trx
    .updateTable('agents')
    .set(changes)
    .where((eb) => eb.and({ ...agentColumns(key), epoch: seen }))
    .executeTakeFirst();
  if (numUpdatedRows === 0n) return undefined;
  await pauseTimersWhileParked(trx, key, { from: statusOf(row).state, to: status.state }, at);
  return { ...rest, state: status.state, wake_at: null, waiting_for: '[]', epoch };
}

/** Makes all agents that wait for matching code due at once, because this worker may have the code (BD-6). */
export async function retryCodeWaits(trx: WorkerTransaction, at: Date): Promise<void> {
  await trx
    .updateTable('agents')
    .set({ wake_at: at, failures: 0 })
    .where('wake_at', 'is not', null)
    .where('state', '=', sql.lit('PARKED'))
    .where('waiting_for', 'like', '["code:%')
    .execute();
}
