import type { AgentKey } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import type { ToolAnswer } from '../../domain/tool-answer.ts';
import { type ClientTerms, type Rung, rungOf } from '../../domain/waiting-ladder.ts';
import { callTool } from './call-tool.ts';
import { type NumberedCall, numberToolCall, type ToolRequest } from './number-call.ts';
import type { WaitTerms } from './waits.ts';

/** What a client says of itself, and how its request waits. */
export interface ToolClient extends Omit<WaitTerms, 'holdMs'> {
  readonly terms: ClientTerms;
}

/** The answer to a tool call: what became of it, an error, or what the client gets while a person decides. */
export type Answered =
  | { readonly answer: ToolAnswer; readonly rung: Rung['answer'] }
  | { readonly error: unknown };

/** Answers a tool call within the time that its client can wait (AP-4). */
export async function answerToolCall(
  context: ProxyContext,
  agent: AgentKey,
  request: ToolRequest,
  { terms, ...wait }: ToolClient,
): Promise<Answered & { readonly row: NumberedCall }> {
  const row = await numberToolCall(context, agent, request);
  const { holdMs, answer: rung } = rungOf(terms);
  try {
    return { row, rung, answer: await callTool(context, row, request, { ...wait, holdMs }) };
  } catch (error) {
    context.telemetry.log.debug({ err: error, call_id: row.call_id }, 'tool call not answered');
    return { row, error };
  }
}
