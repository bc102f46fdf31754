import { randomBytes } from 'node:crypto';
import type { AgentKey } from '@writ/kernel';
import { PreconditionError } from '@writ/kernel';
import { type PreparedQuery, pickColumns, prepareQuery } from '@writ/store';
import { sql } from 'kysely';
import type { AgentChanges, AgentRow } from './agents.ts';
import { agentColumns, keyOf } from './keys.ts';
import type { WorkerDatabase } from './schema.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/**
 * Owner, start and expiry of an agent's lease (RT-2). A lease that expired, was reclaimed or was never used leaves its
 * owner in the row, because the owner may still run the agent. The release of a lease and the end of the agent clear
 * the owner; a release restores the previous owner while services have not rejected that owner yet
 * (LeaseSession.mustFence).
 */
export interface LeaseTerms {
  /** The process that holds the lease; see {@link leaseOwner}. */
  readonly owner: string;
  readonly at: Date;
  readonly expiresAt: Date;
}

/**
 * Stores a delivered agent with this lease, or without one; resolves to its row, or to undefined for
 * a repeated delivery.
 */
export type InsertDelivered = (lease: LeaseTerms | undefined) => Promise<AgentRow | undefined>;

/** Separator between the id of a worker and the id of its process; a worker id cannot contain it. */
const SEPARATOR = '/';

/**
 * Returns a new owner id for the leases of one process of a worker. A restarted worker has a different owner id (RT-2).
 */
export function leaseOwner(workerId: string): string {
  return `${workerId}${SEPARATOR}${randomBytes(8).toString('hex')}`;
}

/** An agent and the epoch of its lease. */
export interface LeasedAgent extends AgentKey {
  readonly epoch: bigint;
}

type Update = AgentChanges & LeaseColumns;

/** Key columns, named differently from the columns to update. */
interface LeaseColumns {
  readonly of_tenant: string;
  readonly of_run: string;
  readonly of_instance: string;
  readonly of_epoch: bigint;
}

const updates = new Map<string, PreparedQuery<WorkerDatabase, Update, unknown>>();

/** Returns the prepared update for a set of columns. The updates are cached; only a few different sets occur. */
function updateOf(changes: AgentChanges): PreparedQuery<WorkerDatabase, Update, unknown> {
  const columns = (Object.keys(changes) as (keyof AgentChanges)[])
    .filter((column) => changes[column] !== undefined)
    .sort();
  const name = columns.join();
  const known = updates.get(name);
  if (known !== undefined) return known;
  const update = prepareQuery((db: WorkerReader, values: Update) =>
    db
      .updateTable('agents')
      .set(pickColumns(values, columns))
      .where('tenant', '=', values.of_tenant)
      .where('run_id', '=', values.of_run)
      .where('instance', '=', values.of_instance)
      .where('epoch', '=', values.of_epoch)
      // A released lease has the same epoch until the next claim.
      .where('lease_expires_at', 'is not', null)
      .where('ended_at', 'is', null),
  );
  updates.set(name, update);
  return update;
}

/**
 * Updates an agent under a lease. If the lease is lost or the agent has ended, throws an error that rolls back the
 * whole transaction (RT-2, RT-4).
 * @throws PreconditionError STALE_EPOCH
 */
export async function saveLeased(
  trx: WorkerTransaction,
  lease: LeasedAgent,
  changes: AgentChanges,
): Promise<void> {
  const { numAffectedRows } = await updateOf(changes)(trx, {
    ...changes,
    of_tenant: lease.tenant,
    of_run: lease.runId,
    of_instance: lease.instance,
    of_epoch: lease.epoch,
  });
  if (numAffectedRows === 1n) return;
  throw new PreconditionError(
    'STALE_EPOCH',
    `The lease of ${lease.instance} with epoch ${lease.epoch} is lost; nothing was written.`,
    { agent: lease.instance, epoch: String(lease.epoch) },
  );
}

/** Extends every lease of a process; returns the leases that it still holds. */
export async function renewLeases(
  trx: WorkerTransaction,
  { owner, expiresAt }: LeaseTerms,
): Promise<LeasedAgent[]> {
  await trx
    .updateTable('agents')
    .set({ lease_expires_at: expiresAt })
    .where('lease_owner', '=', owner)
    .where('lease_expires_at', 'is not', null)
    .execute();
  const held = await trx
    .selectFrom('agents')
    .select(['tenant', 'run_id', 'instance', 'epoch'])
    .where('lease_owner', '=', owner)
    .where('lease_expires_at', 'is not', null)
    .execute();
  return held.map((row) => ({ ...keyOf(row), epoch: row.epoch }));
}

/**
 * Ends the leases of the previous processes of a worker, so that their agents can be claimed at once. A previous
 * process may still run: the higher epoch fences its writes, and the next claim is a takeover (RT-2).
 */
export async function reclaimLeases(trx: WorkerTransaction, workerId: string): Promise<void> {
  const prefix = `${workerId}${SEPARATOR}`;
  await trx
    .updateTable('agents')
    .set((eb) => ({ epoch: eb('epoch', '+', 1n), lease_expires_at: null }))
    .where('lease_owner', 'is not', null)
    .where('lease_expires_at', 'is not', null)
    .where(sql`substr(lease_owner, 1, ${sql.lit(prefix.length)})`, '=', prefix)
    .execute();
}

/**
 * Ends a lease that its process never used, unless another lease has replaced it. The row keeps the owner, so
 * that the next claim is a takeover: the previous owner may still run the agent, and no service has received this
 * epoch.
 */
export async function endUnusedLease(
  trx: WorkerTransaction,
  owner: string,
  { epoch, ...key }: LeasedAgent,
): Promise<void> {
  await trx
    .updateTable('agents')
    .set({ lease_expires_at: null })
    .where((eb) => eb.and({ ...agentColumns(key), epoch, lease_owner: owner }))
    .execute();
}
