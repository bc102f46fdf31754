import { type AgentKey, isWritError, NotFoundError } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import type { ToolAnswer } from '../../domain/tool-answer.ts';
import { findHandle } from '../../store/handles.ts';
import type { ProxyTransaction } from '../../store/proxy-store.ts';
import { decidedTasks, findToolCall, saveToolCall, toolCallKeyOf } from '../../store/tool-calls.ts';
import { actWithoutSlot } from '../agent/act-for-agent.ts';
import { currentDecision, finishCall } from './call-tool.ts';
import type { NumberedCall } from './number-call.ts';

/** How long a replica has to execute the call of a task before another one may, ms. */
const CLAIM_MS = 30_000;

/** A task of a client: a call with the times that its client is shown. */
export interface ToolTask {
  readonly handle: string;
  readonly row: NumberedCall;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

/**
 * Returns a task of the agent.
 * @throws NotFoundError TASK_NOT_FOUND, also for one of another agent
 */
export async function loadTask(
  { store, clock }: Pick<ProxyContext, 'store' | 'clock'>,
  agent: AgentKey,
  handle: string,
): Promise<ToolTask> {
  const found = await findHandle(store.db, agent, handle);
  const row =
    found?.retry === 0 && found.expires_at > clock.now()
      ? await findToolCall(store.db, { ...agent, callId: found.call_id })
      : undefined;
  if (found !== undefined && row !== undefined) {
    return { handle, row, createdAt: found.created_at, expiresAt: found.expires_at };
  }
  throw new NotFoundError('TASK_NOT_FOUND', 'Task not found', {});
}

/** Returns the result of a task, undefined while it has none; the gateway's record is the result. */
export async function resultOfTask(
  context: ProxyContext,
  { row }: ToolTask,
  signal: AbortSignal,
): Promise<ToolAnswer | undefined> {
  if (row.decided_at === null || row.cancelled) return undefined;
  return await endTask(context, row, signal);
}

/**
 * Cancels a task: the supervisor withdraws its call, which then never gets a writ, and no person can approve it any
 * more. A call that was decided before is executed, or refused, as decided: the task keeps its result.
 */
export async function cancelTask(context: ProxyContext, { row }: ToolTask): Promise<void> {
  const { store, clock, peers, waits } = context;
  if (row.task_ended_at !== null) return;
  const call = toolCallKeyOf(row);
  const isWithdrawn = await actWithoutSlot(context, call, 'supervisor', (options) =>
    peers.withdraw(row.call_id, options),
  );
  if (!isWithdrawn) return;
  const at = clock.now();
  const ended = { cancelled: true, delivered: true, decided_at: at, task_ended_at: at };
  await store.transaction((trx) => saveToolCall(trx, call, ended), { run: call });
  waits.wake(row.call_id);
}

/** Sweep: executes calls of tasks that a person has approved; another replica may have received the decision (AP-4). */
export async function executeDecidedTasks(context: ProxyContext): Promise<void> {
  const { store, clock, telemetry } = context;
  for (const row of await decidedTasks(store.db, clock.now())) {
    try {
      await endTask(context, row, new AbortController().signal);
    } catch (error) {
      if (isWritError(error) && error.reason === 'RUN_ENDED') continue;
      const { call_id } = row;
      telemetry.log.warn({ err: error, call_id }, 'approved call of a task not executed yet');
    }
  }
}

/** Claims a task, executes its call, and records that it has a result. */
async function endTask(
  context: ProxyContext,
  row: NumberedCall,
  signal: AbortSignal,
): Promise<ToolAnswer | undefined> {
  const { store, clock } = context;
  const call = toolCallKeyOf(row);
  const claim = async (trx: ProxyTransaction): Promise<boolean> => {
    const now = await findToolCall(trx, call);
    if (now === undefined || now.cancelled) return false;
    const until = new Date(clock.now().getTime() + CLAIM_MS);
    if (now.task_ended_at === null) await saveToolCall(trx, call, { claimed_until: until });
    return true;
  };
  const isMine = await store.transaction(claim, { run: call });
  if (!isMine) return undefined;
  const answer = await currentDecision(context, call)
    .then((decision) => finishCall(context, call, decision, { holdMs: 0, signal }))
    .finally(() => context.slots.released(call));
  if (answer.kind === 'waiting') return undefined;
  if (row.task_ended_at === null) {
    const ended = { task_ended_at: clock.now() };
    await store.transaction((trx) => saveToolCall(trx, call, ended), { run: call });
  }
  return answer;
}
