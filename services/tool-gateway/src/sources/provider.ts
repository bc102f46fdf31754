import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { ResultKind, type ToolResult } from '@writ/contracts/writ/tool/v1/tool_pb';
import { ToolProviderService } from '@writ/contracts/writ/tool/v1/tool_provider_service_pb';
import { type ErrorKind, isWritError } from '@writ/kernel';
import { type ChannelTls, type ClosableRpcClient, createRpcClient } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';
import { badResult, toJsonAnswer } from './json-answer.ts';
import type { ToolAnswer, ToolInvocation, ToolSource } from './source.ts';

/** What {@link openProviderSource} needs. */
export interface ProviderSourceOptions {
  readonly name: string;
  /** `host:port`. */
  readonly address: string;
  /** The gateway's own, for the audience `tool-provider`. */
  readonly serviceToken: () => Promise<string>;
  /** Left out, it is called in cleartext. */
  readonly tls?: ChannelTls | undefined;
  readonly telemetry: Telemetry;
}

/** Longest sentence of a tool that is handed on, in characters. */
const MAX_MESSAGE = 1_000;

/** How much later gRPC's own deadline is, in milliseconds. */
const DEADLINE_SLACK_MS = 500;

/** Statuses that a server gives before it runs anything. */
const REFUSALS: ReadonlySet<ErrorKind> = new Set([
  'invalid_argument',
  'unauthenticated',
  'permission_denied',
  'not_found',
  'failed_precondition',
  'unimplemented',
]);

/** What libs/rpc says of a call that found no connection; of an error that the provider sent it says nothing. */
const UNSENT = /^writ\.tool\.v1\.ToolProviderService\/Invoke at .*?: no replica available: /;

/**
 * Opens a program that serves ToolProviderService as a source of tools (TG-6). It is called when a
 * tool is; that it is away now harms nobody.
 */
export function openProviderSource(options: ProviderSourceOptions): ToolSource {
  const { address, telemetry, serviceToken, tls } = options;
  // Tool authors' servers may know no health checks, and be busy for long without being lost.
  const called = { address, telemetry, serviceToken, tls, health: 'unchecked' } as const;
  const client = createRpcClient(ToolProviderService, called);
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
      // The signal comes first, and says which limit it was.
      { signal, timeoutMs: timeoutMs + DEADLINE_SLACK_MS },
    );
    switch (outcome.case) {
      case 'failure':
        return { kind: 'failed', message: sentence(outcome.value.message, `${tool} failed.`) };
      case 'result':
        return toAnswer(tool, outcome.value);
      default:
        return badResult(tool);
    }
  } catch (error) {
    // What was called off ends with the reason for that, which is no word of the provider's.
    const answer: ToolAnswer = signal.aborted
      ? { kind: 'lost', message: `${tool} was called off.` }
      : fromError(tool, error);
    telemetry.log.warn(
      { source, tool, call_id: callId, reason: isWritError(error) ? error.reason : 'INTERNAL' },
      answer.kind === 'lost'
        ? 'A tool provider did not answer.'
        : 'A tool provider refused a call.',
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
 * What an error says about the tool's work: a refusal came before it, an error of the program is the
 * tool's failure, and after anything else nobody knows.
 */
function fromError(tool: string, error: unknown): ToolAnswer {
  if (!isWritError(error)) return { kind: 'lost', message: `${tool} did not answer.` };
  if (REFUSALS.has(error.kind)) {
    return { kind: 'failed', message: `The provider of ${tool} refused the call.` };
  }
  if (error.kind === 'internal') return { kind: 'failed', message: `${tool} failed.` };
  if (error.kind === 'unavailable' && UNSENT.test(error.message)) {
    return { kind: 'failed', message: `The provider of ${tool} cannot be reached.` };
  }
  return { kind: 'lost', message: `The provider of ${tool} did not answer.` };
}

function sentence(text: string, fallback: string): string {
  return text.trim() === '' ? fallback : text.slice(0, MAX_MESSAGE);
}
