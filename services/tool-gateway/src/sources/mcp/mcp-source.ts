import { setTimeout as wait } from 'node:timers/promises';
import {
  type CallToolResult,
  type Client,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
} from '@modelcontextprotocol/client';
import { type JsonObject, omitUndefined, withTimeout } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import { MCP_CONTENT } from '../../domain/cap-output.ts';
import {
  badResult,
  MAX_MESSAGE_LENGTH,
  type OfferedTools,
  type ToolAnswer,
  type ToolInvocation,
  type ToolSource,
  toJsonAnswer,
} from '../source.ts';
import { McpConnection, McpUnreachableError } from './mcp-connection.ts';
import { assertToolsWithinLimits, MCP_LIMITS, McpLimitError } from './mcp-limits.ts';
import { mcpName, nameAtServer } from './mcp-name.ts';
import { type McpServer, withCallTimeout } from './mcp-transport.ts';

/** Options of {@link openMcpSource}. */
export interface McpSourceOptions {
  readonly name: string;
  readonly server: McpServer;
  readonly log: Logger;
}

const LIST_MS = 10_000;
/** Added to the timeout of the MCP client, in milliseconds, so that the gateway's timeout fires first. */
const TIMEOUT_SLACK_MS = 500;
/**
 * Fraction of a call's timeout for which the call may wait for a connection. The wait ends before the gateway's
 * timeout, after which the outcome would be unknown although nothing was sent.
 */
const CONNECT_SHARE = 0.9;
const MAX_DESCRIPTION = 4_096;

/**
 * Opens an MCP server as a source of tools named `<source>__<tool>` (TG-6). The source connects when it is first
 * called, listed or watched; an unreachable server fails only its own calls. A watched server is listed again after
 * each reconnect and each `tools/list_changed` notification.
 */
export function openMcpSource(options: McpSourceOptions): ToolSource {
  const { name: source, log } = options;
  let onOffer: ((offered: OfferedTools) => void) | undefined;
  const disable = (error: McpLimitError): void => {
    const { disabledMs } = MCP_LIMITS;
    if (connection.isSuspended) return;
    const problem = `it ${error.message}`;
    log.error({ source, problem, disabled_ms: disabledMs }, 'MCP server disabled');
    onOffer?.({});
    void connection.suspend(disabledMs);
  };
  const relist = coalesced(
    async () => onOffer?.(await offer(options, connection)),
    (error) => {
      if (error instanceof McpLimitError) return disable(error);
      const error_type = error instanceof Error ? error.name : '';
      log.warn({ source, error_type }, 'failed to list the tools of an MCP server');
    },
  );
  const connection = new McpConnection(options.server, {
    toolsChanged: () => {
      if (onOffer !== undefined) void relist();
    },
    exceeded: disable,
  });
  return {
    offer: async () => {
      try {
        return await offer(options, connection);
      } catch (error) {
        if (!(error instanceof McpLimitError)) throw error;
        disable(error);
        return {};
      }
    },
    watch: (changed) => {
      onOffer = changed;
      connection.keep();
    },
    invoke: (invocation) => invoke(options, connection, invocation),
    close: async () => {
      onOffer = undefined;
      await connection.close();
    },
  };
}

/**
 * Lists the server's tools. The server's own hints are not trusted: every tool is offered as destructive, with risk 1;
 * tools.yaml can override both.
 */
async function offer(
  { name: source }: McpSourceOptions,
  connection: McpConnection,
): Promise<OfferedTools> {
  const client = await connection.client();
  const { tools } = await client.listTools(undefined, { timeout: LIST_MS });
  assertToolsWithinLimits(tools);
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
  let client: Client | undefined;
  try {
    client = await clientWithin(connection, timeoutMs * CONNECT_SHARE);
    if (signal.aborted) {
      return { kind: 'cancelled', message: `${tool} was cancelled before it started.` };
    }
    const timeout = timeoutMs + TIMEOUT_SLACK_MS;
    const result = await connection.call(client, (connected) =>
      withCallTimeout(timeout + TIMEOUT_SLACK_MS, (ended) =>
        connected.callTool(
          {
            name: nameAtServer(source, tool) ?? tool,
            arguments: { ...args },
            _meta: {
              'writ/idempotency-key': idempotencyKey,
              ...omitUndefined({ traceparent }),
            },
          },
          { signal: AbortSignal.any([signal, ended]), timeout },
        ),
      ),
    );
    connection.answered();
    return toToolAnswer(tool, result);
  } catch (error) {
    const answer = fromError(tool, error, signal);
    const isBroken = isUnknownSession(error) || isRefusedConnection(error);
    if (isBroken && client !== undefined) connection.replace(client);
    log.warn(
      { source, tool, call_id: callId, error_type: error instanceof Error ? error.name : '' },
      answer.kind === 'lost' ? 'MCP server did not respond' : 'MCP server call failed',
    );
    return answer;
  }
}

/**
 * Returns a connected client.
 * @throws McpUnreachableError when no connection is established within `ms`; the connection attempt continues for later
 *   calls
 */
async function clientWithin(connection: McpConnection, ms: number) {
  return await withTimeout(connection.client(), ms, () => {
    throw new McpUnreachableError('No connection was established in time.');
  });
}

/**
 * Maps an error to an answer: `lost` when the call was cancelled after it was sent, or when the error does not show
 * whether the tool was executed.
 */
function fromError(tool: string, error: unknown, signal: AbortSignal): ToolAnswer {
  if (error instanceof McpUnreachableError || isRefusedConnection(error)) {
    return { kind: 'failed', message: `The server of ${tool} is unreachable.` };
  }
  if (signal.aborted) return { kind: 'lost', message: `${tool} was cancelled.` };
  if (error instanceof ProtocolError || isRefusedRequest(error)) {
    return { kind: 'failed', message: `The server of ${tool} rejected the call.` };
  }
  if (error instanceof SdkError && error.code === SdkErrorCode.InvalidResult)
    return badResult(tool);
  return { kind: 'lost', message: `The server of ${tool} did not respond.` };
}

/**
 * Returns whether an error is an HTTP status that a server returns for an unknown session, for example after a restart
 * of the server: 404 in the specification, 400 in servers such as "everything". A server or a proxy may also return it
 * for one request of a valid session, whose other calls then continue.
 */
function isUnknownSession(error: unknown): boolean {
  return error instanceof SdkHttpError && (error.status === 404 || error.status === 400);
}

/** Returns whether an error is an HTTP status 4xx. */
function isRefusedRequest(error: unknown): boolean {
  const status = error instanceof SdkHttpError ? error.status : undefined;
  return status !== undefined && status >= 400 && status < 500;
}

/** Returns whether the server refused the connection, so that nothing was sent. */
function isRefusedConnection(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED';
}

/**
 * Maps a result of an MCP server. An error becomes `failed`. Structured content becomes a JSON object; text blocks are
 * dropped, because they repeat the structured content, and all other blocks are in the field `_content`. Otherwise the
 * answer is the text if all blocks are text, the URL if the only block links to an image, or a JSON object with all
 * content blocks.
 */
function toToolAnswer(tool: string, result: CallToolResult): ToolAnswer {
  const { content, structuredContent, isError } = result;
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  const text = texts.join('\n');
  if (isError === true) {
    const message = text.trim() === '' ? `${tool} failed.` : text.slice(0, MAX_MESSAGE_LENGTH);
    return { kind: 'failed', message };
  }
  if (structuredContent !== undefined) {
    const others = content.filter(({ type }) => type !== 'text');
    if (others.length === 0) return toJsonAnswer(tool, JSON.stringify(structuredContent));
    return contentAnswer(tool, { ...structuredContent, _content: others });
  }
  if (texts.length > 0 && texts.length === content.length) {
    return { kind: 'output', output: { kind: 'text', content: text } };
  }
  const [only] = content;
  const image = content.length === 1 && only !== undefined ? imageAt(only) : undefined;
  if (image !== undefined) return { kind: 'output', output: { kind: 'image', ...image } };
  return contentAnswer(tool, { content });
}

function contentAnswer(tool: string, value: object): ToolAnswer {
  const answer = toJsonAnswer(tool, JSON.stringify(value));
  if (answer.kind !== 'output' || answer.output.kind !== 'json') return answer;
  return { kind: 'output', output: { ...answer.output, mediaType: MCP_CONTENT } };
}

function imageAt(block: CallToolResult['content'][number]) {
  if (block.type !== 'resource_link') return undefined;
  const { uri, mimeType: mediaType = '' } = block;
  const isImage =
    mediaType.startsWith('image/') && /^https?:$/.test(URL.parse(uri)?.protocol ?? '');
  return isImage ? { content: uri, mediaType } : undefined;
}

/**
 * Returns a function that calls `list`, never concurrently and at most once in {@link MCP_LIMITS}.listIntervalMs; all
 * requests that arrive before this interval has passed cause one more call.
 */
function coalesced(
  list: () => Promise<void>,
  onError: (error: unknown) => void,
): () => Promise<void> {
  let current: Promise<void> | undefined;
  let again = false;
  const run = async (): Promise<void> => {
    do {
      again = false;
      await list().catch(onError);
      await wait(MCP_LIMITS.listIntervalMs, undefined, { ref: false });
    } while (again);
    current = undefined;
  };
  return () => {
    again = current !== undefined;
    current ??= run();
    return current;
  };
}
