import type { CallToolResult } from '@modelcontextprotocol/client';
import { toJsonAnswer } from '../json-answer.ts';
import type { ToolAnswer } from '../source.ts';

/** Longest sentence of a tool that is handed on, in characters. */
const MAX_MESSAGE = 1_000;

/**
 * What an MCP server's answer comes to: its structured content, else its text, else the URL of an
 * image where that is all, else all of its content as JSON.
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
  const [only] = content;
  const image = content.length === 1 && only !== undefined ? imageAt(only) : undefined;
  if (image !== undefined) return { kind: 'output', output: { kind: 'image', ...image } };
  return toJsonAnswer(tool, JSON.stringify({ content }));
}

function imageAt(block: CallToolResult['content'][number]) {
  if (block.type !== 'resource_link') return undefined;
  const { uri, mimeType: mediaType = '' } = block;
  const isImage =
    mediaType.startsWith('image/') && /^https?:$/.test(URL.parse(uri)?.protocol ?? '');
  return isImage ? { content: uri, mediaType } : undefined;
}
