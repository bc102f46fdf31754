import { type AgentKey, NotFoundError } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import type { ToolAnswer } from '../../domain/tool-answer.ts';
import { findHandle } from '../../store/handles.ts';
import type { ProxyTransaction } from '../../store/proxy-store.ts';
import {
  claimTask,
  findToolCall,
  saveToolCall,
  type ToolCallRow,
  toolCallKeyOf,
} from '../../store/tool-calls.ts';
import { actWithoutSlot } from '../agent/act-for-agent.ts';
import { currentDecision, finishCall } from '../tools/call-tool.ts';

/**
 * Duration of the claim of a task, ms. Until the claim expires, the sweeps of DecidedTasks skip the task; a request of
 * the client does not. The gateway executes the call only once in any case.
 */
export const CLAIM_MS = 30_000;

/** The message for a task that cannot be read. It does not contain the id, which may be malformed. */
export const TASK_NOT_FOUND =
  'The task does not exist or has expired. Repeat the call with the same arguments.';

/** An MCP task: a tool call, with the times that the client is shown. */
export interface ToolTask {
  readonly handle: string;
  readonly row: ToolCallRow;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

/**
 * Returns a task of the agent.
 * @throws NotFoundError TASK_NOT_FOUND for an unknown or expired task, and for a task of another agent
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
  throw new NotFoundError('TASK_NOT_FOUND', TASK_NOT_FOUND, {});
}

/**
 * Returns the result of the call of a task; undefined while a decision of a person is pending, and for a cancelled
 * task. The gateway stores the result.
 * @throws what Slots.grant and AgentTokens.of throw; errors of the supervisor and the gateway
 */
export async function resultOfTask(
  context: ProxyContext,
  { row }: ToolTask,
  signal: AbortSignal,
): Promise<ToolAnswer | undefined> {
  if (row.decided_at === null || row.cancelled) return undefined;
  return await endTask(context, row, signal);
}

/**
 * Cancels a task: the supervisor withdraws the call, which then never gets a writ and can no longer be approved. A call
 * that was already decided is executed or refused as decided, and the task keeps its result.
 * @throws what AgentTokens.of throws; errors of the supervisor
 */
export async function cancelTask(context: ProxyContext, { row }: ToolTask): Promise<void> {
  const { store, clock, peers, waitingRequests } = context;
  if (row.task_ended_at !== null) return;
  const call = toolCallKeyOf(row);
  const isWithdrawn = await actWithoutSlot(context, call, 'supervisor', (options) =>
    peers.withdraw(row.call_id, options),
  );
  if (!isWithdrawn) return;
  const at = clock.now();
  const ended = { cancelled: true, delivered: true, decided_at: at, task_ended_at: at };
  await store.transaction((trx) => saveToolCall(trx, call, ended), { run: call });
  waitingRequests.wake(row.call_id);
}

/**
 * Claims a task, executes its call if it was approved, records that the task has a result, and returns the result. The
 * claim succeeds even if another replica has claimed the task. Returns undefined when the task was cancelled or still
 * waits for a person.
 */
export async function endTask(
  context: ProxyContext,
  row: ToolCallRow,
  signal: AbortSignal,
): Promise<ToolAnswer | undefined> {
  const { store, clock } = context;
  const call = toolCallKeyOf(row);
  const claim = async (trx: ProxyTransaction): Promise<boolean> => {
    const current = await findToolCall(trx, call);
    if (current === undefined || current.cancelled) return false;
    const until = new Date(clock.now().getTime() + CLAIM_MS);
    await claimTask(trx, call, until);
    return true;
  };
  const mayComplete = await store.transaction(claim, { run: call });
  if (!mayComplete) return undefined;
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
