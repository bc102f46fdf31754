import type { AgentKey, RunKey, RunState } from '@writ/kernel';
import type { Selectable } from 'kysely';
import { findAgent } from './agents.ts';
import { agentColumns } from './keys.ts';
import type { TimersTable } from './schema.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** A row of `timers`. */
export type TimerRow = Selectable<TimersTable>;

/** A timer to insert. */
export interface NewTimer extends AgentKey {
  readonly timerId: string;
  readonly name: string;
  /** JSON object. */
  readonly payload: string;
  readonly dueAt: Date;
  /** Instance of an agent of the run; the timer is paused while this agent is parked (`waits_with`). Default: none. */
  readonly waitsWith?: string;
}

/** Starts a timer; it starts paused when the agent `waitsWith` is parked (SB-4). */
export async function insertTimer(
  trx: WorkerTransaction,
  timer: NewTimer,
  at: Date,
): Promise<void> {
  const { timerId, name, payload, dueAt, waitsWith } = timer;
  await trx
    .insertInto('timers')
    .values({
      ...agentColumns(timer),
      timer_id: timerId,
      name,
      payload,
      due_at: dueAt,
      remaining_ms: null,
      waits_with: waitsWith ?? null,
    })
    .execute();
  if (waitsWith === undefined) return;
  const target = { ...timer, instance: waitsWith };
  const agent = await findAgent(trx, target);
  if (agent?.state === 'PARKED') await pauseTimers(trx, target, at);
}

/** Deletes a timer; returns false when it does not exist. */
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

/** Returns the due timers, oldest first; `tenants` is empty for all tenants. */
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

/** Returns when the next timer is due; undefined when no timer runs. */
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
 * Pauses the timers whose `waits_with` is this agent when it is parked, and resumes them with the remaining time
 * afterwards (SB-4). Must be called for every state change of an agent.
 */
export async function pauseTimersWhileParked(
  trx: WorkerTransaction,
  agent: AgentKey,
  { from, to }: { readonly from: RunState; readonly to: RunState },
  at: Date,
): Promise<void> {
  if (from !== 'PARKED' && to === 'PARKED') await pauseTimers(trx, agent, at);
  if (from === 'PARKED' && to !== 'PARKED') await resumeTimers(trx, agent, at);
}

/** Deletes the timers of a run. */
export async function deleteTimers(trx: WorkerTransaction, run: RunKey): Promise<void> {
  await trx
    .deleteFrom('timers')
    .where('tenant', '=', run.tenant)
    .where('run_id', '=', run.runId)
    .execute();
}

async function pauseTimers(trx: WorkerTransaction, agent: AgentKey, at: Date): Promise<void> {
  for (const timer of await timersPausedWith(trx, agent)) {
    if (timer.due_at === null) continue;
    const left = BigInt(Math.max(0, timer.due_at.getTime() - at.getTime()));
    await saveTimer(trx, timer, { due_at: null, remaining_ms: left });
  }
}

async function resumeTimers(trx: WorkerTransaction, agent: AgentKey, at: Date): Promise<void> {
  for (const timer of await timersPausedWith(trx, agent)) {
    if (timer.remaining_ms === null) continue;
    const dueAt = new Date(at.getTime() + Number(timer.remaining_ms));
    await saveTimer(trx, timer, { due_at: dueAt, remaining_ms: null });
  }
}

async function timersPausedWith(
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
