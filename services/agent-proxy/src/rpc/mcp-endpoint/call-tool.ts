import type { CallToolRequest, CallToolResult, ServerContext } from '@modelcontextprotocol/server';
import { canonicalJson, isWritError, wrapUnknown } from '@writ/kernel';
import { answerToolCall } from '../../app/tools/answer-call.ts';
import type { ToolRequest } from '../../app/tools/number-call.ts';
import type { ProxyContext } from '../../context.ts';
import { mcpFailure, mcpResult } from '../../wire/mcp-result.ts';
import type { Exchange } from './exchange.ts';
import { termsOf } from './terms.ts';

type Params = CallToolRequest['params'];

/** `tools/call`: reviewed, executed with a writ, and answered with its receipt (AP-3). */
export function callToolHandler(
  context: ProxyContext,
  exchange: Exchange,
  era: 'legacy' | 'modern',
) {
  const { open, agent } = exchange;
  return async (params: Params, ctx: ServerContext): Promise<CallToolResult> => {
    const answered = await answerToolCall(context, agent, toolRequest(params, ctx), {
      terms: termsOf(ctx, era),
      signal: open.signal,
      onWait: (isWaiting) => {
        open.isWaiting = isWaiting;
      },
    });
    const { row } = answered;
    if ('error' in answered) {
      const { error } = answered;
      return mcpFailure(row, isWritError(error) ? error : wrapUnknown(error));
    }
    if (answered.answer.kind !== 'waiting') exchange.answering(context, row);
    return mcpResult(row, answered.answer);
  };
}

function toolRequest(
  { name: tool, arguments: args = {} }: Params,
  ctx: ServerContext,
): ToolRequest {
  const own = ctx.mcpReq._meta?.['io.writ/call_id'];
  const ownId = typeof own === 'string' && /^[a-z0-9_-]{1,64}$/.test(own) ? own : '';
  return { tool, argumentsJson: canonicalJson(args), ownId };
}
