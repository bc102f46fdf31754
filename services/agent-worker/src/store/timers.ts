import type { RunState } from '@writ/kernel';
import type { Selectable } from 'kysely';
import { type AgentKey, agentColumns, type RunKey } from './keys.ts';
import type { TimersTable } from './schema.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** A signal that comes at a time. */
export type TimerRow = Selectable<TimersTable>;

/** Sets a timer. */
export async function insertTimer(trx: WorkerTransaction, timer: TimerRow): Promise<void> {
  await trx.insertInto('timers').values(timer).execute();
}

/** Takes a timer away; answers false when it is gone already. */
export async function deleteTimer(
  trx: WorkerTransaction,
  key: AgentKey,
  timerId: string,
): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('timers')
    .where((eb) => eb.and({ ...agentColumns(key), timer_id: timerId }))
    .executeTakeFirst();
  return numDeletedRows === 1n;
}

/** Timers whose time has come, the oldest first; of some tenants, or of all when none is given. */
export async function dueTimers(
  db: WorkerReader,
  at: Date,
  most: number,
  tenants: readonly string[],
): Promise<TimerRow[]> {
  return await db
    .selectFrom('timers')
    .selectAll()
    .$if(tenants.length > 0, (query) => query.where('tenant', 'in', [...tenants]))
    .where('due_at', '<=', at)
    .orderBy('due_at')
    .limit(most)
    .execute();
}

/** When the next timer is due; undefined when none runs. */
export async function nextDue(
  db: WorkerReader,
  tenants: readonly string[],
): Promise<Date | undefined> {
  const next = await db
    .selectFrom('timers')
    .select('due_at')
    .$if(tenants.length > 0, (query) => query.where('tenant', 'in', [...tenants]))
    .where('due_at', 'is not', null)
    .orderBy('due_at')
    .limit(1)
    .executeTakeFirst();
  return next?.due_at ?? undefined;
}

/**
 * Called whenever an agent changes its state: what waits for it stands still while it is parked, and
 * goes on with what was left then (SB-4).
 */
export async function followParking(
  trx: WorkerTransaction,
  agent: AgentKey,
  before: RunState,
  after: RunState,
  at: Date,
): Promise<void> {
  if (before !== 'PARKED' && after === 'PARKED') await stopTimers(trx, agent, at);
  if (before === 'PARKED' && after !== 'PARKED') await restartTimers(trx, agent, at);
}

/** Deletes the timers of a run. */
export async function deleteTimers(trx: WorkerTransaction, run: RunKey): Promise<void> {
  await trx
    .deleteFrom('timers')
    .where('tenant', '=', run.tenant)
    .where('run_id', '=', run.runId)
    .execute();
}

async function stopTimers(trx: WorkerTransaction, agent: AgentKey, at: Date): Promise<void> {
  for (const timer of await waitingWith(trx, agent)) {
    if (timer.due_at === null) continue;
    const left = BigInt(Math.max(0, timer.due_at.getTime() - at.getTime()));
    await saveTimer(trx, timer, { due_at: null, remaining_ms: left });
  }
}

async function restartTimers(trx: WorkerTransaction, agent: AgentKey, at: Date): Promise<void> {
  for (const timer of await waitingWith(trx, agent)) {
    if (timer.remaining_ms === null) continue;
    const dueAt = new Date(at.getTime() + Number(timer.remaining_ms));
    await saveTimer(trx, timer, { due_at: dueAt, remaining_ms: null });
  }
}

async function waitingWith(
  trx: WorkerTransaction,
  { tenant, runId, instance }: AgentKey,
): Promise<TimerRow[]> {
  return await trx
    .selectFrom('timers')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .where('waits_with', '=', instance)
    .execute();
}

async function saveTimer(
  trx: WorkerTransaction,
  { tenant, run_id, instance, timer_id }: TimerRow,
  changes: Pick<TimerRow, 'due_at' | 'remaining_ms'>,
): Promise<void> {
  await trx
    .updateTable('timers')
    .set(changes)
    .where((eb) => eb.and({ tenant, run_id, instance, timer_id }))
    .execute();
}
