import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { ResultKind, type ToolResult } from '@writ/contracts/writ/tool/v1/tool_pb';
import { ToolProviderService } from '@writ/contracts/writ/tool/v1/tool_provider_service_pb';
import { type ErrorKind, isWritError } from '@writ/kernel';
import {
  type ChannelTls,
  type ClosableRpcClient,
  createRpcClient,
  UnsentCallError,
} from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';
import {
  badResult,
  MAX_MESSAGE_LENGTH,
  type ToolAnswer,
  type ToolInvocation,
  type ToolSource,
  toJsonAnswer,
} from './source.ts';

/** Options of {@link openProviderSource}. */
export interface ProviderSourceOptions {
  readonly name: string;
  /** `host:port`. */
  readonly address: string;
  /** Service token of the gateway for the audience `tool-provider`. */
  readonly serviceToken: () => Promise<string>;
  /** Undefined selects cleartext. */
  readonly tls?: ChannelTls | undefined;
  readonly telemetry: Telemetry;
}

/** Added to the gRPC deadline, in milliseconds, so that the gateway's timeout fires first. */
const DEADLINE_SLACK_MS = 500;

/**
 * Errors after which the gateway assumes that the tool was not executed: a server normally returns these statuses
 * before it runs a tool.
 */
const REJECTIONS: ReadonlySet<ErrorKind> = new Set([
  'invalid_argument',
  'unauthenticated',
  'permission_denied',
  'not_found',
  'failed_precondition',
  'unimplemented',
]);

/**
 * Returns a source whose tools a server of ToolProviderService executes (TG-6). The connection is made on the first call,
 * so an unreachable provider does not fail the start.
 */
export function openProviderSource(options: ProviderSourceOptions): ToolSource {
  const { address, telemetry, serviceToken, tls } = options;
  // The server of a tool author might not implement health checks, or not answer them while it runs a tool.
  const clientOptions = { address, telemetry, serviceToken, tls, health: 'unchecked' } as const;
  const client = createRpcClient(ToolProviderService, clientOptions);
  return {
    invoke: (invocation) => invoke(options, client, invocation),
    close: async () => client.close(),
  };
}

async function invoke(
  { name: source, telemetry }: ProviderSourceOptions,
  client: ClosableRpcClient<typeof ToolProviderService>,
  { deadline, timeoutMs, signal, args: _, traceparent: __, ...request }: ToolInvocation,
): Promise<ToolAnswer> {
  const { tool, callId } = request;
  try {
    const { outcome } = await client.invoke(
      { ...request, deadline: timestampFromDate(deadline) },
      // The signal aborts first and carries the reason.
      { signal, timeoutMs: timeoutMs + DEADLINE_SLACK_MS },
    );
    switch (outcome.case) {
      case 'failure':
        return { kind: 'failed', message: messageOr(outcome.value.message, `${tool} failed.`) };
      case 'result':
        return toAnswer(tool, outcome.value);
      default:
        return badResult(tool);
    }
  } catch (error) {
    // A cancelled call rejects with the reason of the signal, not with a response of the provider.
    const answer: ToolAnswer = signal.aborted
      ? { kind: 'lost', message: `${tool} was cancelled.` }
      : fromError(tool, error);
    telemetry.log.warn(
      { source, tool, call_id: callId, reason: isWritError(error) ? error.reason : 'INTERNAL' },
      answer.kind === 'lost' ? 'outcome of a tool call unknown' : 'tool provider call failed',
    );
    return answer;
  }
}

function toAnswer(tool: string, { kind, content, mediaType }: ToolResult): ToolAnswer {
  switch (kind) {
    case ResultKind.JSON:
      return toJsonAnswer(tool, content);
    case ResultKind.TEXT:
      return { kind: 'output', output: { kind: 'text', content } };
    case ResultKind.IMAGE: {
      const url = URL.parse(content);
      if (url === null || !/^https?:$/.test(url.protocol)) return badResult(tool);
      return { kind: 'output', output: { kind: 'image', content, mediaType } };
    }
    default:
      return badResult(tool);
  }
}

/**
 * Maps an error to an answer: `failed` after a rejection, after INTERNAL, UNKNOWN or an invalid response, and for a call
 * that was not sent; `lost` after any other error, because the tool may have been executed.
 */
function fromError(tool: string, error: unknown): ToolAnswer {
  if (!isWritError(error)) return { kind: 'lost', message: `${tool} did not respond.` };
  if (REJECTIONS.has(error.kind)) {
    return { kind: 'failed', message: `The provider of ${tool} rejected the call.` };
  }
  if (error.kind === 'internal') return { kind: 'failed', message: `${tool} failed.` };
  if (error instanceof UnsentCallError) {
    return { kind: 'failed', message: `The provider of ${tool} is unreachable.` };
  }
  return {
    kind: 'lost',
    message: `The call to the provider of ${tool} failed, and the tool may have been executed.`,
  };
}

function messageOr(text: string, fallback: string): string {
  return text.trim() === '' ? fallback : text.slice(0, MAX_MESSAGE_LENGTH);
}
