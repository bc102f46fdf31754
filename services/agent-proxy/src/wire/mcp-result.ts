import type { CallToolResult } from '@modelcontextprotocol/server';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { ExecutedFrom } from '@writ/contracts/writ/review/v1/action_pb';
import type { Decision } from '@writ/contracts/writ/review/v1/decision_pb';
import type { CallToolResponse } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { ResultKind, type ToolResult } from '@writ/contracts/writ/tool/v1/tool_pb';
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  omitUndefined,
  type WritError,
} from '@writ/kernel';
import type { ToolAnswer } from '../domain/tool-answer.ts';
import type { ToolCallRow } from '../store/tool-calls.ts';
import { refusalText } from './refusal-text.ts';

/** Delay after which a client that cannot wait should repeat a call, seconds. */
const RETRY_AFTER_S = 60;

const EXECUTED_FROM: Readonly<Partial<Record<ExecutedFrom, string>>> = {
  [ExecutedFrom.ORIGINAL]: 'original',
  [ExecutedFrom.SUPERVISOR_REVISED]: 'supervisor_revised',
  [ExecutedFrom.HUMAN_REVISED]: 'human_revised',
};

/** Returns the result of a tool call for its client (AP-3). */
export function mcpResult(row: ToolCallRow, answer: ToolAnswer): CallToolResult {
  switch (answer.kind) {
    case 'executed':
      return executed(row, answer.decision, answer.outcome);
    case 'refused':
      return refused(row, answer.decision);
    case 'waiting':
      return waiting(row, answer.approvalId);
  }
}

/** The result of a call that failed before it was executed, or whose outcome did not reach agent-proxy. */
export function mcpFailure(row: ToolCallRow, error: WritError): CallToolResult {
  const isLater = ['unavailable', 'deadline_exceeded', 'aborted', 'resource_exhausted'];
  const again = isLater.includes(error.kind) || error.reason === 'AGENT_PAUSED';
  const advice = `Call ${row.tool} again with exactly the same arguments: it is executed at most once.`;
  return {
    content: [text(again ? `${error.message} ${advice}` : error.message)],
    isError: true,
    _meta: { ...idsOf(row), 'io.writ/reason': error.reason.toLowerCase() },
  };
}

function executed(
  row: ToolCallRow,
  decision: Decision,
  { status, stopReason, message, result, receipt, replayed }: CallToolResponse,
): CallToolResult {
  const _meta = {
    ...idsOf(row),
    ...decisionOf(decision),
    ...(receipt !== '' && { 'io.writ/receipt': receipt }),
    ...(replayed && { 'io.writ/replayed': true }),
  };
  if (status !== CallStatus.OK) {
    const reason = stopReason || 'tool_error';
    return {
      content: [...changeNote(decision), text(message || reason)],
      isError: true,
      _meta: { ..._meta, 'io.writ/reason': reason },
    };
  }
  const { content, structuredContent } = contentOf(row, result);
  return {
    content: [...changeNote(decision), ...content],
    ...omitUndefined({ structuredContent }),
    _meta: { ..._meta, ...(result?.truncated === true && { 'io.writ/truncated': true }) },
  };
}

function refused(row: ToolCallRow, decision: Decision): CallToolResult {
  const { reason, stopReason } = decision;
  return {
    content: [text(refusalText(row.tool, decision))],
    isError: true,
    _meta: { ...idsOf(row), ...decisionOf(decision), 'io.writ/reason': stopReason || reason },
  };
}

function waiting(row: ToolCallRow, approvalId: string): CallToolResult {
  const what = approvalId.startsWith('apr')
    ? `Not executed yet: a person must approve (${approvalId}).`
    : 'The outcome is unknown: a person must find out what happened.';
  return {
    content: [
      text(
        `${what} Call ${row.tool} again with exactly the same arguments in a minute to get the result; do not vary them.`,
      ),
    ],
    isError: true,
    _meta: {
      ...idsOf(row),
      'io.writ/reason': 'approval_pending',
      'io.writ/pending': {
        approval: approvalId,
        call_id: row.call_id,
        retry_after_s: RETRY_AFTER_S,
      },
    },
  };
}

/** Returns a note about changed arguments; without it, the model assumes that its own arguments were used. */
function changeNote({ executedAction, executedFrom, humanApproval, reason }: Decision) {
  const isChanged =
    executedFrom === ExecutedFrom.SUPERVISOR_REVISED || executedFrom === ExecutedFrom.HUMAN_REVISED;
  if (!isChanged || executedAction?.kind.case !== 'tool') return [];
  const { argumentsJson } = executedAction.kind.value;
  const why = humanApproval?.basis || reason;
  return [text(`Executed with changed arguments: ${argumentsJson}. Reason: ${why}.`)];
}

function contentOf(
  { tool }: ToolCallRow,
  result: ToolResult | undefined,
): Pick<CallToolResult, 'content' | 'structuredContent'> {
  if (result === undefined) return { content: [] };
  const { kind, content, mediaType } = result;
  if (kind === ResultKind.IMAGE) {
    const link = { type: 'resource_link', uri: content, name: tool } as const;
    return { content: [{ ...link, ...(mediaType !== '' && { mimeType: mediaType }) }] };
  }
  if (result.truncated) return { content: truncated({ name: tool, result }) };
  if (kind !== ResultKind.JSON) return { content: [text(content)] };
  const value = JSON.parse(content) as JsonValue;
  if (!isJsonObject(value)) return { content: [text(content)] };
  if (mediaType === MCP_CONTENT) return blocksOf(value);
  return { content: [text(content)], structuredContent: { ...value } };
}

/** Media type of a JSON object that contains the content blocks of an MCP server. */
const MCP_CONTENT = 'application/vnd.writ.mcp-content+json';

/**
 * Returns the content blocks of an MCP server unchanged; the gateway has validated them against the schema of the
 * protocol. If the blocks are in `_content`, the other fields of the object are the structured content, and are also
 * shown as text before the blocks.
 */
function blocksOf({
  _content: beside,
  ...fields
}: JsonObject): Pick<CallToolResult, 'content' | 'structuredContent'> {
  const blocks = (value: JsonValue | undefined) => value as unknown as CallToolResult['content'];
  if (beside === undefined) return { content: blocks(fields.content) };
  const shown = text(JSON.stringify(fields));
  return { content: [shown, ...blocks(beside)], structuredContent: fields };
}

/** A truncated text or JSON object is returned as text; truncated content blocks of an MCP server are omitted. */
function truncated({
  name: tool,
  result: { content, mediaType, fullSizeBytes },
}: {
  readonly name: string;
  readonly result: ToolResult;
}): CallToolResult['content'] {
  const size = `The result of ${tool} has ${fullSizeBytes} bytes, more than max_output_bytes of the tool`;
  if (mediaType !== '') return [text(`${size}: its content is omitted.`)];
  return [text(content), text(`${size}: it is cut.`)];
}

function idsOf(row: ToolCallRow): Record<string, unknown> {
  return { 'io.writ/run': row.run_id, 'io.writ/call': row.call_id };
}

function decisionOf({ decisionId, executedFrom, approvalId }: Decision): Record<string, unknown> {
  const from = EXECUTED_FROM[executedFrom];
  return {
    'io.writ/decision': decisionId,
    ...omitUndefined({ 'io.writ/executed_from': from }),
    ...(approvalId !== '' && { 'io.writ/approval': approvalId }),
  };
}

function text(value: string) {
  return { type: 'text', text: value } as const;
}
