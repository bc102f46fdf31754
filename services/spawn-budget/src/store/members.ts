import { DataLossError, isPriority, omitUndefined, type RunKey } from '@writ/kernel';
import { pickColumns, prepareQuery } from '@writ/store';
import type { Member, MemberWait, SlotState } from '../domain/pool/pool.ts';
import { type MemberRow, members, type SpawnReader, type SpawnTransaction } from './schema.ts';

/** Maximum rows of one statement, because databases limit the parameters of a statement. */
const MAX_ROWS = 500;
/** Up to this many rows are written one by one, with a prepared statement. */
const MAX_SINGLE_ROWS = 4;

const STATES: ReadonlySet<string> = new Set<SlotState>([
  'active',
  'suspended',
  'paused',
  'waiting',
  'released',
]);

/** Splits `items` into batches that one statement can hold. */
export function* chunks<T>(items: readonly T[]): Generator<T[]> {
  for (let start = 0; start < items.length; start += MAX_ROWS)
    yield items.slice(start, start + MAX_ROWS);
}

/** The released agents among `instances` of a run. */
export async function releasedMembers(
  trx: SpawnTransaction,
  { tenant, runId }: RunKey,
  instances: readonly string[],
): Promise<Member[]> {
  const rows = await trx
    .selectFrom('members')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .where('instance', 'in', instances)
    .where('state', '=', 'released')
    .execute();
  return rows.map(toMember);
}

/** Runs with an expired lease or deadline, at most `limit`. */
export async function expiredPools(db: SpawnReader, at: Date, limit: number): Promise<RunKey[]> {
  const rows = await db
    .selectFrom('members')
    .select(['tenant', 'run_id'])
    .distinct()
    .where('expires_at', '<=', at)
    .limit(limit)
    .execute();
  return rows.map(({ tenant, run_id }) => ({ tenant, runId: run_id }));
}

/** Inserts or updates agents. */
export async function upsertMembers(
  trx: SpawnTransaction,
  rows: readonly MemberRow[],
): Promise<void> {
  if (rows.length <= MAX_SINGLE_ROWS) {
    for (const row of rows) await upsertMember(trx, row);
    return;
  }
  for (const some of chunks(rows)) await upsertQuery(trx, some).execute();
}

const upsertMember = prepareQuery((db: SpawnReader, row: MemberRow) =>
  upsertQuery(db, [pickColumns(row, members.columns)]),
);

function upsertQuery(db: SpawnReader, rows: readonly MemberRow[]) {
  return db
    .insertInto('members')
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(['tenant', 'run_id', 'instance']).doUpdateSet((set) => ({
        priority: set.ref('excluded.priority'),
        state: set.ref('excluded.state'),
        queue_position: set.ref('excluded.queue_position'),
        expires_at: set.ref('excluded.expires_at'),
        epoch: set.ref('excluded.epoch'),
        waiting_since: set.ref('excluded.waiting_since'),
        waiting_for: set.ref('excluded.waiting_for'),
        waiting_sequence: set.ref('excluded.waiting_sequence'),
      })),
    );
}

/** The row of an agent. */
export function fromMember({ tenant, runId }: RunKey, member: Member): MemberRow {
  const { agent, parent, queuePosition, expiresAt, wait } = member;
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
    queue_position: queuePosition === undefined ? null : BigInt(queuePosition),
    expires_at: expiresAt === undefined ? null : new Date(expiresAt),
    epoch: member.epoch,
    acquired_at: new Date(member.acquiredAt),
    waiting_since: wait === undefined ? null : new Date(wait.since),
    waiting_for: wait === undefined ? null : JSON.stringify(wait.signals),
    waiting_sequence: wait === undefined ? null : BigInt(wait.sequence),
  };
}

/**
 * The agent of a row.
 * @throws DataLossError INVALID_POOL_MEMBER for an unknown priority or state
 */
export function toMember(row: MemberRow): Member {
  const { priority, state } = row;
  if (!isPriority(priority) || !isState(state))
    throw new DataLossError(
      'INVALID_POOL_MEMBER',
      `The stored state of agent ${row.instance} of run ${row.run_id} is corrupt.`,
      { run_id: row.run_id, agent_instance: row.instance },
    );
  const { parent_name: name, parent_instance: instance } = row;
  const parent = name === null || instance === null ? undefined : { name, instance };
  return {
    agent: { name: row.name, instance: row.instance },
    depth: Number(row.depth),
    priority,
    state,
    order: Number(row.acquired),
    epoch: row.epoch,
    acquiredAt: row.acquired_at.getTime(),
    ...omitUndefined({
      parent,
      queuePosition: row.queue_position === null ? undefined : Number(row.queue_position),
      expiresAt: row.expires_at?.getTime(),
      wait: waitOf(row),
    }),
  };
}

function waitOf(row: MemberRow): MemberWait | undefined {
  const { waiting_since: since, waiting_for: signals, waiting_sequence: sequence } = row;
  if (since === null || signals === null || sequence === null) return undefined;
  return {
    since: since.getTime(),
    signals: JSON.parse(signals) as string[],
    sequence: Number(sequence),
  };
}

function isState(state: string): state is SlotState {
  return STATES.has(state);
}
