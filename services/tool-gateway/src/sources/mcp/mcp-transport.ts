import { AsyncLocalStorage } from 'node:async_hooks';
import { StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { omitUndefined } from '@writ/kernel';
import { fetchLongCall } from '@writ/service';
import {
  limitEvents,
  limitResponse,
  MCP_LIMITS,
  type McpLimitError,
  MessageRate,
} from './mcp-limits.ts';

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

/**
 * Creates a transport that is not started.
 * @param onExceeded called when the notification stream of an HTTP server has an event that is too large, or too many
 *   events; not called for a child process
 */
export function createTransport(
  server: McpServer,
  onExceeded: (error: McpLimitError) => void,
): Transport {
  if (server.transport === 'stdio') {
    const { command, args, env, cwd } = server;
    return new StdioClientTransport({
      command,
      args: [...args],
      env: { ...env },
      cwd,
      // Standard error is ignored, because it may contain secrets and any amount of output.
      stderr: 'ignore',
      maxBufferSize: MCP_LIMITS.messageBytes,
    });
  }
  const rate = new MessageRate();
  return new HttpTransport(new URL(server.url), {
    requestInit: { headers: { ...server.headers } },
    fetch: async (url, init) => {
      if (init?.method === 'POST') {
        const call = isToolCall(init) ? toolCalls.getStore()?.timeout : undefined;
        if (call === undefined) return limitResponse(await fetch(url, init));
        return limitResponse(await fetchLongCall(url, within(init, call)));
      }
      // The SDK reopens the stream of a call that breaks after an event with an id.
      const call = toolCalls.getStore()?.timeout;
      if (call !== undefined) {
        // After status 405 the SDK does not try again.
        if (call.aborted) return new Response(null, { status: 405 });
        return limitResponse(await fetchLongCall(url, within(init ?? {}, call)));
      }
      // The built-in fetch closes a silent notification stream after 5 minutes, and the SDK opens it again. This
      // replaces a dead connection.
      return limitEvents(await fetch(url, init), rate, onExceeded);
    },
  });
}

/** A tool call in flight. */
interface ToolCall {
  /** Ends the HTTP requests of the call. */
  readonly timeout: AbortSignal;
  /** Called when the stream with the response has ended, with or without a result, and cannot be resumed. */
  readonly onResponseEnd: () => void;
}

/** The tool calls in flight, by their asynchronous context. */
const toolCalls = new AsyncLocalStorage<ToolCall>();

/**
 * Makes a tool call with `send`. Its HTTP requests end after `timeoutMs`: the SDK leaves the request of a call that
 * timed out open, and requests to a server that hangs would accumulate. Other requests keep the timeouts of the
 * built-in fetch, 5 minutes.
 * @param send receives a signal that aborts when the stream with the response has ended: the SDK would wait for a result
 *   until the timeout of the call, for example after the server was restarted
 */
export async function withCallTimeout<T>(
  timeoutMs: number,
  send: (ended: AbortSignal) => Promise<T>,
): Promise<T> {
  const ended = new AbortController();
  const timeout = AbortSignal.timeout(timeoutMs);
  const call: ToolCall = { timeout, onResponseEnd: () => ended.abort() };
  return await toolCalls.run(call, () => send(ended.signal));
}

/** Reports the end of the response to a tool call. */
class HttpTransport extends StreamableHTTPClientTransport {
  override async send(
    message: Parameters<StreamableHTTPClientTransport['send']>[0],
    options?: Parameters<StreamableHTTPClientTransport['send']>[1],
  ): Promise<void> {
    const onRequestStreamEnd = toolCalls.getStore()?.onResponseEnd;
    await super.send(message, { ...options, ...omitUndefined({ onRequestStreamEnd }) });
  }
}

/** Adds `signal` to the signal of a request. */
function within(init: RequestInit, signal: AbortSignal): RequestInit {
  const signals = [init.signal ?? [], signal].flat();
  return { ...init, signal: AbortSignal.any(signals) };
}

function isToolCall({ body }: RequestInit): boolean {
  return typeof body === 'string' && body.includes('"method":"tools/call"');
}
