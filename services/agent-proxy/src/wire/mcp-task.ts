import type { CallToolResult } from '@modelcontextprotocol/server';
import { UNKNOWN_OUTCOME } from '../domain/tool-answer.ts';
import type { ToolCallRow } from '../store/tool-calls.ts';

/** Interval at which a client should poll the result of a task, ms. */
const POLL_MS = 5_000;

/** The data of a task that its client receives. */
interface ShownTask {
  readonly handle: string;
  readonly row: ToolCallRow;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

/**
 * Returns one line that tells persons what a call waits for. It contains no arguments, because only the approver may
 * see them.
 */
export function waitText({ tool }: ToolCallRow, approvalId: string): string {
  return approvalId === UNKNOWN_OUTCOME
    ? `Waiting for a person to determine the outcome of ${tool}.`
    : `Waiting for approval ${approvalId} of ${tool}.`;
}

/** Returns a new task in place of the result of a call (extension io.modelcontextprotocol/tasks). */
export function createdTask(task: ShownTask, approvalId: string): CallToolResult {
  const created = {
    resultType: 'task',
    ...stateOf(task, 'working', waitText(task.row, approvalId)),
  };
  // The SDK's type covers only complete results, but the SDK sends any result.
  return created as unknown as CallToolResult;
}

/** Returns the state of a task; with the result of its call when it has one. */
export function shownTask(task: ShownTask, result: CallToolResult | undefined) {
  const { row } = task;
  if (row.cancelled) return stateOf(task, 'cancelled', 'Cancelled by the client.');
  if (result !== undefined) {
    const completed = { resultType: 'complete', ...result };
    return { ...stateOf(task, 'completed', 'The result is final.'), result: completed };
  }
  const isDecided = row.decided_at !== null;
  return stateOf(
    task,
    'working',
    isDecided ? `Executing ${row.tool}.` : waitText(row, row.approval_id ?? UNKNOWN_OUTCOME),
  );
}

function stateOf(
  { handle, row, createdAt, expiresAt }: ShownTask,
  status: string,
  message: string,
) {
  const updatedAt = row.task_ended_at ?? row.decided_at ?? createdAt;
  return {
    taskId: handle,
    status,
    statusMessage: message,
    createdAt: createdAt.toISOString(),
    lastUpdatedAt: updatedAt.toISOString(),
    ttlMs: expiresAt.getTime() - createdAt.getTime(),
    pollIntervalMs: POLL_MS,
    ...(row.approval_id !== null && {
      _meta: { 'io.writ/pending': { approval: row.approval_id, call_id: row.call_id } },
    }),
  };
}
