import {
  ProtocolError,
  type ProtocolErrorCode,
  type Server,
  type StandardSchemaV1,
} from '@modelcontextprotocol/server';
import { fieldsOf, isWritError, wrapUnknown } from '@writ/kernel';
import {
  cancelTask,
  loadTask,
  resultOfTask,
  TASK_NOT_FOUND,
  type ToolTask,
} from '../../app/waiting-calls/tasks.ts';
import type { ProxyContext } from '../../context.ts';
import { mcpFailure, mcpResult } from '../../wire/mcp-result.ts';
import { shownTask } from '../../wire/mcp-task.ts';
import type { Exchange } from './exchange.ts';

const INVALID_PARAMS = -32_602 as ProtocolErrorCode;

/** Registers the handlers of the tasks extension; a task represents a call that waits for a person (AP-4). */
export function serveTasks(server: Server, context: ProxyContext, exchange: Exchange): void {
  const load = async (params: TaskParams): Promise<ToolTask> => {
    try {
      return await loadTask(context, exchange.agent, params.taskId);
    } catch (error) {
      const isUnknown = isWritError(error) && error.reason === 'TASK_NOT_FOUND';
      throw isUnknown ? new ProtocolError(INVALID_PARAMS, error.message) : error;
    }
  };
  server.setRequestHandler('tasks/get', { params: TASK_PARAMS }, async (params) => {
    const task = await load(params);
    try {
      const answer = await resultOfTask(context, task, exchange.open.signal);
      if (answer === undefined) return shownTask(task, undefined);
      exchange.answering(context, task.row);
      return shownTask(task, mcpResult(task.row, answer));
    } catch (error) {
      const failure = isWritError(error) ? error : wrapUnknown(error);
      context.telemetry.log.debug({ err: failure }, 'task without a result yet');
      // The task is reported as unfinished, because the call may still be executed.
      return {
        ...shownTask(task, undefined),
        statusMessage: textOf(mcpFailure(task.row, failure)),
      };
    }
  });
  // The server never requests input from the client, because input of the client must not decide an approval.
  server.setRequestHandler('tasks/update', { params: TASK_PARAMS }, async (params) => {
    await load(params);
    return {};
  });
  server.setRequestHandler('tasks/cancel', { params: TASK_PARAMS }, async (params) => {
    await cancelTask(context, await load(params));
    return {};
  });
}

interface TaskParams {
  readonly taskId: string;
}

/** Schema of the parameters of task requests, in the form that the SDK requires. */
const TASK_PARAMS: StandardSchemaV1<unknown, TaskParams> = {
  '~standard': {
    version: 1,
    vendor: 'writ',
    validate: (value) => {
      const { taskId } = fieldsOf(value);
      return typeof taskId === 'string' && /^[0-9a-f]{32}$/.test(taskId)
        ? { value: { taskId } }
        : { issues: [{ message: TASK_NOT_FOUND, path: ['taskId'] }] };
    },
  },
};

function textOf({ content }: ReturnType<typeof mcpFailure>): string {
  const [first] = content;
  return first?.type === 'text' ? first.text : '';
}
