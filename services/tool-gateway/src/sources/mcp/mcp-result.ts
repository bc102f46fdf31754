import type { CallToolResult } from '@modelcontextprotocol/client';
import { toJsonAnswer } from '../json-answer.ts';
import type { ToolAnswer } from '../source.ts';

/** Longest sentence of a tool that is handed on, in characters. */
const MAX_MESSAGE = 1_000;

/**
 * What an MCP server's answer comes to: its structured content, else its text, else all of its
 * content as JSON.
 */
export function toToolAnswer(tool: string, result: CallToolResult): ToolAnswer {
  const { content, structuredContent, isError } = result;
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  const text = texts.join('\n');
  if (isError === true) {
    const message = text.trim() === '' ? `${tool} failed.` : text.slice(0, MAX_MESSAGE);
    return { kind: 'failed', message };
  }
  if (structuredContent !== undefined) {
    return toJsonAnswer(tool, JSON.stringify(structuredContent));
  }
  if (texts.length > 0 && texts.length === content.length) {
    return { kind: 'output', output: { kind: 'text', content: text } };
  }
  return toJsonAnswer(tool, JSON.stringify({ content }));
}
