import { StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

/** Transport of an MCP server: a child process, or HTTP. */
export type McpServer =
  | {
      readonly transport: 'stdio';
      readonly command: string;
      readonly args: readonly string[];
      /** Its environment, in addition to PATH, HOME, USER, LOGNAME, SHELL and TERM. */
      readonly env: Readonly<Record<string, string>>;
      /** Absolute path. */
      readonly cwd: string;
    }
  | {
      readonly transport: 'http';
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
    };

/** Largest message that is read, in bytes. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

/** Creates a transport that is not started. */
export function createTransport(server: McpServer): Transport {
  if (server.transport === 'stdio') {
    const { command, args, env, cwd } = server;
    return new StdioClientTransport({
      command,
      args: [...args],
      env: { ...env },
      cwd,
      // Standard error may contain secrets, and any amount of output.
      stderr: 'ignore',
      maxBufferSize: MAX_MESSAGE_BYTES,
    });
  }
  return new StreamableHTTPClientTransport(new URL(server.url), {
    requestInit: { headers: { ...server.headers } },
    fetch: fetchWithLimit,
  });
}

/** Limits the response of a POST, which is one result; the stream of a GET has no end. */
async function fetchWithLimit(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  const { body, status, statusText, headers } = response;
  if (init?.method !== 'POST' || body === null) return response;
  let size = 0;
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      size += chunk.byteLength;
      if (size <= MAX_MESSAGE_BYTES) controller.enqueue(chunk);
      else
        controller.error(new RangeError(`The response is larger than ${MAX_MESSAGE_BYTES} bytes.`));
    },
  });
  return new Response(body.pipeThrough(limit), { status, statusText, headers });
}
