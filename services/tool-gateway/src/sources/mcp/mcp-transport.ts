import { StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

/** How an MCP server is reached: as a process of its own, or over HTTP. */
export type McpServer =
  | {
      readonly transport: 'stdio';
      readonly command: string;
      readonly args: readonly string[];
      /** All that it gets of the environment, beside PATH, HOME, USER, LOGNAME, SHELL and TERM. */
      readonly env: Readonly<Record<string, string>>;
      /** Absolute. */
      readonly cwd: string;
    }
  | {
      readonly transport: 'http';
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
    };

/** Largest message that is read, in bytes. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

/** A transport that has not been started. */
export function createTransport(server: McpServer): Transport {
  if (server.transport === 'stdio') {
    const { command, args, env, cwd } = server;
    return new StdioClientTransport({
      command,
      args: [...args],
      env: { ...env },
      cwd,
      // What it says there may be anything, secrets and floods included.
      stderr: 'ignore',
      maxBufferSize: MAX_MESSAGE_BYTES,
    });
  }
  return new StreamableHTTPClientTransport(new URL(server.url), {
    requestInit: { headers: { ...server.headers } },
    fetch: fetchWithLimit,
  });
}

/** A POST is answered with one result; the stream that a GET opens goes on for good. */
async function fetchWithLimit(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  const { body, status, statusText, headers } = response;
  if (init?.method !== 'POST' || body === null) return response;
  let size = 0;
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      size += chunk.byteLength;
      if (size <= MAX_MESSAGE_BYTES) controller.enqueue(chunk);
      else controller.error(new RangeError(`An answer is larger than ${MAX_MESSAGE_BYTES} bytes.`));
    },
  });
  return new Response(body.pipeThrough(limit), { status, statusText, headers });
}
