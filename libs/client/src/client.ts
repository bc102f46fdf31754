import type { DescMessage } from '@bufbuild/protobuf';
import {
  type Client,
  createClient,
  type Interceptor,
  type StreamResponse,
  type Transport,
} from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { CallerService } from '@writ/contracts/writ/identity/v1/caller_service_pb';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { fromConnectError } from '@writ/rpc/connect-errors';
import { resumeApprovals } from './resume-approvals.ts';
import { resumeWatches } from './resume-watches.ts';
import { retryStarts } from './retry-starts.ts';

/** Options of {@link createWritClient}. */
export interface WritClientOptions {
  /** Base URL of the edge, such as `http://127.0.0.1:8080`. */
  readonly baseUrl: string;
  /** API key; sent as a bearer token, never logged. */
  readonly apiKey: string;
  /** Certificate authorities for the edge, in PEM. Default: those of Node. */
  readonly ca?: string;
  /**
   * Default timeout of unary calls, ms. Default 60,000, which is the maximum of the edge. With 0 the client sets no
   * limit: the edge still ends a call after 60,000 ms, but a start that is rejected with a retry delay is retried
   * until it is accepted or the `signal` of the call aborts. Streams have no timeout.
   */
  readonly timeoutMs?: number;
  /**
   * Time without a message after which watchRun, runAgent and watchApprovals reconnect and continue after the last
   * message, ms. Default 15,000; the supervisor sends a heartbeat after 5 s without an event. After four silent streams
   * in succession, these calls fail with WATCH_SILENT. watchRuns does not reconnect.
   */
  readonly silenceMs?: number;
  /**
   * Time for which watchRun, runAgent and watchApprovals reconnect when the platform becomes unavailable, for example
   * because it restarts, and continue after the last message, ms. A watch that does not receive a message within this
   * time fails with the error of its last stream. A watch that has never reached the platform, and any error other than
   * UNAVAILABLE, fails at once. Default 0: UNAVAILABLE also fails at once. watchRuns does not reconnect.
   */
  readonly reconnectMs?: number;
  /**
   * Whether startRun and runAgent retry a start that is rejected with a retry delay (START_QUEUE_FULL, RATE_LIMITED):
   * after one to two times that delay, with the same `requestId`, within the timeout of the call, or else `timeoutMs`;
   * 0 means no time limit. Default true.
   */
  readonly retryStarts?: boolean;
  /** Returns the W3C trace context of a call; called for every call. */
  readonly traceparent?: () => string | undefined;
}

/** Typed clients of the public services. Calls fail with the `WritError` of the service (SYS-3). */
export interface WritClient {
  readonly runs: Client<typeof RunService>;
  readonly approvals: Client<typeof ApprovalService>;
  readonly audit: Client<typeof AuditService>;
  readonly control: Client<typeof ControlService>;
  readonly usage: Client<typeof UsageService>;
  /** Client of GetCaller, which returns the owner of the API key, its roles and the RPCs that they permit. */
  readonly caller: Client<typeof CallerService>;
}

const DEFAULT_TIMEOUT_MS = 60_000;

/**
 * Creates a client of the public services. The client has no `close` method, because it does not own a connection.
 *
 * @example
 * ```ts
 * import { randomUUID } from 'node:crypto';
 * import { createWritClient } from '@writ/client';
 * import { isWritError } from '@writ/kernel';
 *
 * const client = createWritClient({
 *   baseUrl: 'http://127.0.0.1:8080',
 *   apiKey: process.env.WRIT_API_KEY ?? '',
 * });
 * try {
 *   const { run } = await client.runs.startRun({
 *     requestId: randomUUID(),
 *     agent: 'refund-worker',
 *     goal: 'Refund order 1042.',
 *   });
 *   for await (const { event } of client.runs.watchRun({ runId: run?.runId ?? '' })) console.log(event?.entry.case);
 * } catch (error) {
 *   if (isWritError(error)) console.error(error.reason, error.metadata);
 * }
 * ```
 */
export function createWritClient(options: WritClientOptions): WritClient {
  const identify: Interceptor = (next) => (request) => {
    request.header.set('authorization', `Bearer ${options.apiKey}`);
    const traceparent = options.traceparent?.();
    if (traceparent !== undefined) request.header.set('traceparent', traceparent);
    return next(request);
  };
  const { ca, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const connect = createConnectTransport({
    baseUrl: options.baseUrl,
    httpVersion: '1.1',
    interceptors: [identify],
    ...(ca !== undefined && { nodeOptions: { ca } }),
  });
  const transport = translateErrors(withDefaultTimeout(connect, timeoutMs));
  // The retries wrap the watches, so that the pause before a retry is not mistaken for a silent stream.
  const watched = resumeWatches(createClient(RunService, transport), options);
  return {
    runs: options.retryStarts === false ? watched : retryStarts(watched, timeoutMs),
    approvals: resumeApprovals(createClient(ApprovalService, transport), options),
    audit: createClient(AuditService, transport),
    control: createClient(ControlService, transport),
    usage: createClient(UsageService, transport),
    caller: createClient(CallerService, transport),
  };
}

/** Adds a default timeout to unary calls. */
function withDefaultTimeout(transport: Transport, defaultMs: number): Transport {
  return {
    unary: (method, signal, timeoutMs = defaultMs, ...rest) =>
      transport.unary(method, signal, timeoutMs, ...rest),
    stream: (...call) => transport.stream(...call),
  };
}

/** Wraps a transport so that calls and streams fail with the `WritError` of the service (SYS-3). */
function translateErrors(transport: Transport): Transport {
  return {
    unary: (...call) => transport.unary(...call).catch(rethrow),
    stream: async (...call) => translated(await transport.stream(...call).catch(rethrow)),
  };
}

function translated<I extends DescMessage, O extends DescMessage>(
  response: StreamResponse<I, O>,
): StreamResponse<I, O> {
  return { ...response, message: untilError(response.message) };
}

async function* untilError<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (error) {
    rethrow(error);
  }
}

function rethrow(error: unknown): never {
  throw fromConnectError(error);
}
