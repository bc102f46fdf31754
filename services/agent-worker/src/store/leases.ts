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
 * A lease of an agent until its expiry (RT-2). A row keeps the owner of a lease that another process ended, because
 * that owner may still run the agent; a lease that its own process released has no owner.
 */
export interface LeaseTerms {
  /** The process, as by {@link leaseOwner}. */
  readonly owner: string;
  readonly at: Date;
  readonly expiresAt: Date;
}

/**
 * Stores a delivered agent with this lease, or without one; resolves to its row, or to undefined for
 * a repeated delivery.
 */
export type InsertDelivered = (lease: LeaseTerms | undefined) => Promise<AgentRow | undefined>;

/** Separates the id of a worker, which cannot contain it, from the id of its process. */
const SEPARATOR = '/';

/** Returns a new owner of leases: one process of a worker. A restarted worker is another owner (RT-2). */
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

/** Returns the prepared update of a set of columns; only a few such sets exist. */
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
 * Updates an agent under a lease. Without the lease, or after the agent's end, the error rolls back
 * the whole transaction (RT-2, RT-4).
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
 * Ends one lease of a process that never used it, unless another lease has replaced it. The row keeps the owner, so
 * that the next claim is a takeover: the owner before may still run the agent, and no service has seen the epoch.
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
