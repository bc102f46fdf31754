import { type AgentKey, isWritError } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import type { ToolAnswer } from '../../domain/tool-answer.ts';
import { type ClientTerms, waitingPolicyOf } from '../../domain/waiting-policy.ts';
import { findToolCall, type ToolCallRow } from '../../store/tool-calls.ts';
import { callTool } from '../tools/call-tool.ts';
import {
  digestOf,
  findOrInsertToolCall,
  type ToolRequest,
} from '../tools/find-or-insert-tool-call.ts';
import { invalidState, issueRetry, issueTask, TASK_MS, takeRetry } from './issue-handles.ts';
import type { ToolTask } from './tasks.ts';
import type { WaitTerms } from './waiting-requests.ts';

/** The waiting capabilities that a client declares, and the callbacks of its request. */
export interface ToolClient extends Omit<WaitTerms, 'holdMs' | 'onProgress'> {
  readonly terms: ClientTerms;
  /** The `requestState` that the client returns when it repeats a call on request; empty for a first call. */
  readonly state: string;
  /** Receives the progress of a wait. */
  readonly onProgress: (row: ToolCallRow, approvalId: string) => void;
}

/** The answer to a tool call: its result or error, or the task or `requestState` with which the client waits for it. */
export type Answered = { readonly row: ToolCallRow } & (
  | { readonly answer: ToolAnswer }
  | { readonly error: unknown }
  | { readonly task: ToolTask; readonly approvalId: string }
  | { readonly state: string }
);

/**
 * Answers a tool call within the time that its client can wait (AP-4).
 * @throws InvalidRequestError INVALID_REQUEST_STATE
 */
export async function answerToolCall(
  context: ProxyContext,
  agent: AgentKey,
  request: ToolRequest,
  client: ToolClient,
): Promise<Answered> {
  const { row, retries } = await findCall(context, agent, request, client.state);
  const { clock, disconnectTimes, telemetry } = context;
  const shortestWaitMs = disconnectTimes.shortestOf(agent);
  const policy = waitingPolicyOf(client.terms, { retries, shortestWaitMs });
  const began = clock.monotonicMs();
  let isWaiting = false;
  const terms: WaitTerms = {
    holdMs: policy.holdMs,
    signal: client.signal,
    onWait: (waits) => {
      isWaiting ||= waits;
      client.onWait?.(waits);
    },
    onProgress: (approvalId) => client.onProgress(row, approvalId),
  };
  try {
    const answer = await callTool(context, row, request, terms);
    if (answer.kind !== 'waiting' || policy.answer === 'pending') return { row, answer };
    if (policy.answer === 'repeat') {
      return { row, state: await issueRetry(context, row, retries + 1) };
    }
    const { approvalId } = answer;
    return { row, task: await newTask(context, row), approvalId };
  } catch (error) {
    const hasDisconnected = client.signal.aborted && !isWritError(error);
    if (hasDisconnected && isWaiting) disconnectTimes.record(agent, clock.monotonicMs() - began);
    telemetry.log.debug({ err: error, call_id: row.call_id }, 'tool call failed');
    return { row, error };
  }
}

/**
 * Returns the row of a call. A repeated request continues the call that its `requestState` names, even if the result of
 * that call has been delivered in the meantime.
 */
async function findCall(
  context: ProxyContext,
  agent: AgentKey,
  request: ToolRequest,
  state: string,
): Promise<{ readonly row: ToolCallRow; readonly retries: number }> {
  if (state === '') return { row: await findOrInsertToolCall(context, agent, request), retries: 0 };
  const { call_id: callId, retry: retries } = await takeRetry(context, agent, state);
  const row = await findToolCall(context.store.db, { ...agent, callId });
  if (row === undefined || row.digest !== digestOf(request)) throw invalidState();
  return { row, retries };
}

async function newTask(context: ProxyContext, row: ToolCallRow): Promise<ToolTask> {
  const handle = await issueTask(context, row);
  const createdAt = context.clock.now();
  return { handle, row, createdAt, expiresAt: new Date(createdAt.getTime() + TASK_MS) };
}
