import {
  type CallToolRequest,
  type CallToolResult,
  type InputRequiredResult,
  inputRequired,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { canonicalJson, isWritError, wrapUnknown } from '@writ/kernel';
import type { ToolRequest } from '../../app/tools/find-or-insert-tool-call.ts';
import { type Answered, answerToolCall } from '../../app/waiting-calls/answer-call.ts';
import type { ProxyContext } from '../../context.ts';
import { mcpFailure, mcpResult } from '../../wire/mcp-result.ts';
import { createdTask, waitText } from '../../wire/mcp-task.ts';
import { type Era, termsOf } from './client-terms.ts';
import type { Exchange } from './exchange.ts';

/** The field of `_meta` with the id that a client chose for a call. */
const CALL_ID = 'io.writ/call_id';

type Params = CallToolRequest['params'];
type Result = CallToolResult | InputRequiredResult;

/**
 * Returns the handler of `tools/call`: each call is reviewed, executed with a writ, and answered with its result and
 * receipt (AP-3).
 */
export function callToolHandler(context: ProxyContext, exchange: Exchange, era: Era) {
  const { open, agent } = exchange;
  return async (params: Params, ctx: ServerContext): Promise<Result> => {
    const state = ctx.mcpReq.requestState();
    const answered = await answerToolCall(context, agent, toolRequest(params, ctx), {
      terms: termsOf(ctx, era),
      state: typeof state === 'string' ? state : '',
      signal: open.signal,
      onWait: (isWaiting) => {
        open.isWaiting = isWaiting;
      },
      onProgress: (row, approvalId) => notifyProgress(ctx, waitText(row, approvalId)),
    }).catch((error: unknown) => {
      throw isWritError(error) && error.reason === 'INVALID_REQUEST_STATE'
        ? new ProtocolError(ProtocolErrorCode.InvalidParams, error.message, {
            reason: 'invalid_request_state',
          })
        : error;
    });
    return resultOf(context, exchange, answered);
  };
}

function resultOf(context: ProxyContext, exchange: Exchange, answered: Answered): Result {
  const { row } = answered;
  if ('error' in answered) {
    const { error } = answered;
    return mcpFailure(row, isWritError(error) ? error : wrapUnknown(error));
  }
  if ('state' in answered) return inputRequired({ requestState: answered.state });
  if ('task' in answered) return createdTask(answered.task, answered.approvalId);
  if (answered.answer.kind !== 'waiting') exchange.answering(context, row);
  return mcpResult(row, answered.answer);
}

function notifyProgress({ mcpReq }: ServerContext, message: string): void {
  const { progressToken } = mcpReq._meta ?? {};
  if (progressToken === undefined) return;
  const params = { progressToken, progress: performance.now(), message };
  // A client that has disconnected gets no notification.
  mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined);
}

function toolRequest(
  { name: tool, arguments: args = {} }: Params,
  ctx: ServerContext,
): ToolRequest {
  const clientCallId = callIdOf(ctx.mcpReq._meta?.[CALL_ID]);
  return { tool, argumentsJson: canonicalJson(args), clientCallId };
}

/**
 * Returns the call id that the client chose, empty if it chose none.
 * @throws ProtocolError InvalidParams for a malformed id, which would not make the call idempotent
 */
function callIdOf(id: unknown): string {
  if (id === undefined) return '';
  if (typeof id === 'string' && /^[a-z0-9_-]{1,64}$/.test(id)) return id;
  const rule = 'must consist of 1 to 64 lower-case letters, digits, "_" and "-"';
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, `_meta["${CALL_ID}"] ${rule}.`);
}
