import type { IncomingMessage } from 'node:http';
import { type JsonObject, ToolFailure, type ToolFunction } from '@writ/kernel';
import { type EgressAllowance, EgressRefusal, guardedRequest } from '@writ/service';
import type { OfferedTool } from '../source.ts';

/** Largest part of a body that is read; the tool's `max_output_bytes` may cut further. */
const MAX_BODY_BYTES = 1_048_576;
const HEADERS = { accept: 'application/json, text/*;q=0.9, */*;q=0.1', 'user-agent': 'writ' };
const TEXTUAL = /^(text\/|application\/([a-z0-9.+-]+\+)?(json|xml|javascript|yaml)\b)/i;
const JSON_TYPE = /^application\/([a-z0-9.+-]+\+)?json\b/i;

/** Definition of the tool that {@link createHttpFetch} returns. */
export const HTTP_FETCH: OfferedTool = {
  description:
    'Gets a page or a JSON document from the open internet. Gives back the status, the content type ' +
    'and the body as text, or as json where it is JSON.',
  inputSchema: {
    type: 'object',
    properties: {
      url: { type: 'string', maxLength: 4_096, description: 'Begins with http:// or https://.' },
      method: { enum: ['GET', 'HEAD'], description: 'Default GET.' },
    },
    required: ['url'],
  },
  sideEffect: 'read_only',
  risk: 0.5,
  timeoutMs: 15_000,
  maxCallsPerAgent: 10,
};

/** Creates the tool that fetches a page or an API of the public internet through the egress guard (TG-9). */
export function createHttpFetch(allowance: EgressAllowance): ToolFunction {
  return async ({ url, method }, { signal }) => {
    try {
      const { response, ...found } = await guardedRequest(String(url), {
        method: method === 'HEAD' ? 'HEAD' : 'GET',
        headers: HEADERS,
        allowance,
        signal,
      });
      const contentType = response.headers['content-type'] ?? '';
      const body = await readBody(response, contentType);
      return { ...found, content_type: contentType, ...body };
    } catch (error) {
      if (error instanceof EgressRefusal) throw new ToolFailure(error.message);
      if (signal.aborted || error instanceof ToolFailure) throw error;
      throw new ToolFailure('The server is unreachable or aborted its response.');
    }
  };
}

async function readBody(response: IncomingMessage, contentType: string): Promise<JsonObject> {
  if ((response.headers['content-encoding'] ?? 'identity') !== 'identity') {
    response.destroy();
    throw new ToolFailure(
      'The server sent a compressed body although identity encoding was requested.',
    );
  }
  if (contentType !== '' && !TEXTUAL.test(contentType)) {
    response.destroy();
    return { truncated: false };
  }
  const { bytes, truncated } = await readBytes(response);
  const text = decode(bytes, contentType);
  const json = JSON_TYPE.test(contentType) && !truncated ? parseJson(text) : undefined;
  return { truncated, ...(json === undefined ? { text } : { json }) };
}

async function readBytes(response: IncomingMessage) {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    const left = MAX_BODY_BYTES - size;
    chunks.push(chunk.subarray(0, left));
    size += chunk.length;
    // Leaving the loop closes the connection, so that an endless body is not read.
    if (size > MAX_BODY_BYTES) break;
  }
  return { bytes: Buffer.concat(chunks), truncated: size > MAX_BODY_BYTES };
}

function decode(bytes: Buffer, contentType: string): string {
  const charset = /charset="?([\w-]+)/i.exec(contentType)?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}

function parseJson(text: string) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
