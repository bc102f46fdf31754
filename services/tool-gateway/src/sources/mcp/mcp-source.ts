import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client';
import type { JsonObject } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import { badResult } from '../json-answer.ts';
import type { OfferedTool } from '../offered-tool.ts';
import type { ToolAnswer, ToolInvocation, ToolSource } from '../source.ts';
import { listing } from './listing.ts';
import { McpAwayError, McpConnection } from './mcp-connection.ts';
import { mcpName, nameAtServer } from './mcp-name.ts';
import { toToolAnswer } from './mcp-result.ts';
import type { McpServer } from './mcp-transport.ts';

/** What {@link openMcpSource} needs. */
export interface McpSourceOptions {
  readonly name: string;
  readonly server: McpServer;
  readonly log: Logger;
}

const LIST_MS = 10_000;
/** How much later the client's own limit is: the gateway's comes first, and says which it was. */
const TIMEOUT_SLACK_MS = 500;
const MAX_DESCRIPTION = 4_096;

/**
 * Opens an MCP server as a source of tools, named `<source>__<tool>` (TG-6). Nothing is connected
 * until it is needed or watched; a server that is away harms only its own calls. A watched one is
 * listed again whenever it is connected anew or says that its tools changed.
 */
export function openMcpSource(options: McpSourceOptions): ToolSource {
  const { name: source, log } = options;
  let tell: ((offered: Readonly<Record<string, OfferedTool>>) => void) | undefined;
  const relist = listing(
    async () => tell?.(await offer(options, connection)),
    (error) => {
      const error_type = error instanceof Error ? error.name : '';
      log.warn({ source, error_type }, 'An MCP server does not say what it has.');
    },
  );
  const connection = new McpConnection(options.server, () => {
    if (tell !== undefined) void relist();
  });
  return {
    offer: () => offer(options, connection),
    watch: (changed) => {
      tell = changed;
      connection.keep();
    },
    invoke: (invocation) => invoke(options, connection, invocation),
    close: () => connection.close(),
  };
}

/** Whatever the server says of its tools' effects, they count as destructive and most risky. */
async function offer(
  { name: source }: McpSourceOptions,
  connection: McpConnection,
): Promise<Readonly<Record<string, OfferedTool>>> {
  const client = await connection.client();
  const { tools } = await client.listTools(undefined, { timeout: LIST_MS });
  return Object.fromEntries(
    tools.map(({ name, description = '', inputSchema }) => [
      mcpName(source, name),
      {
        description: description.slice(0, MAX_DESCRIPTION),
        inputSchema: inputSchema as JsonObject,
        sideEffect: 'destructive',
        risk: 1,
      },
    ]),
  );
}

async function invoke(
  { name: source, log }: McpSourceOptions,
  connection: McpConnection,
  { tool, args, signal, timeoutMs, idempotencyKey, callId, traceparent }: ToolInvocation,
): Promise<ToolAnswer> {
  try {
    const client = await connection.client();
    signal.throwIfAborted();
    const result = await client.callTool(
      {
        name: nameAtServer(source, tool) ?? tool,
        arguments: { ...args },
        _meta: {
          'writ/idempotency-key': idempotencyKey,
          ...(traceparent !== undefined && { traceparent }),
        },
      },
      { signal, timeout: timeoutMs + TIMEOUT_SLACK_MS },
    );
    connection.answered();
    return toToolAnswer(tool, result);
  } catch (error) {
    const answer = fromError(tool, error, signal);
    if (isRefusedRequest(error) || isRefusedConnection(error)) await connection.drop();
    log.warn(
      { source, tool, call_id: callId, error_type: error instanceof Error ? error.name : '' },
      answer.kind === 'lost' ? 'An MCP server did not answer.' : 'An MCP server refused a call.',
    );
    return answer;
  }
}

/** What an error says about the tool's work; where nothing is known, it is lost. */
function fromError(tool: string, error: unknown, signal: AbortSignal): ToolAnswer {
  if (error instanceof McpAwayError || isRefusedConnection(error)) {
    return { kind: 'failed', message: `The server of ${tool} cannot be reached.` };
  }
  if (signal.aborted) return { kind: 'lost', message: `${tool} was called off.` };
  if (error instanceof ProtocolError || isRefusedRequest(error)) {
    return { kind: 'failed', message: `The server of ${tool} refused the call.` };
  }
  if (error instanceof SdkError && error.code === SdkErrorCode.InvalidResult)
    return badResult(tool);
  return { kind: 'lost', message: `The server of ${tool} did not answer.` };
}

/** Among others what a server says that was started anew, and knows the session no more. */
function isRefusedRequest(error: unknown): boolean {
  const status = error instanceof SdkHttpError ? error.status : undefined;
  return status !== undefined && status >= 400 && status < 500;
}

/** What fetch throws before anything was sent. */
function isRefusedConnection(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED';
}
