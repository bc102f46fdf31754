import { type Client, createClient, type Interceptor, type Transport } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { translateErrors } from './translate-errors.ts';

/** Where the platform's public door is, and who knocks. */
export interface WritClientOptions {
  /** Base URL of the edge, such as `http://127.0.0.1:8080`. */
  readonly baseUrl: string;
  /** API key; sent as a bearer token, never logged. */
  readonly apiKey: string;
  /** The authorities that vouch for the edge, in PEM; default: those that Node trusts. */
  readonly ca?: string;
  /**
   * Longest a unary call may take where the call itself says nothing, ms; default 60,000, which is the
   * longest that the edge takes. Streams have no limit.
   */
  readonly timeoutMs?: number;
  /** W3C trace context to put on every call, asked for at each one. */
  readonly traceparent?: () => string | undefined;
}

/** The public services, typed; every failure is a `WritError` with the reason that the service gave (SYS-3). */
export interface WritClient {
  readonly runs: Client<typeof RunService>;
  readonly approvals: Client<typeof ApprovalService>;
  readonly audit: Client<typeof AuditService>;
  readonly control: Client<typeof ControlService>;
}

const DEFAULT_TIMEOUT_MS = 60_000;

/** Makes a client of the public services. It holds no connection of its own, so there is nothing to close. */
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
  const transport = translateErrors(withTimeout(connect, timeoutMs));
  return {
    runs: createClient(RunService, transport),
    approvals: createClient(ApprovalService, transport),
    audit: createClient(AuditService, transport),
    control: createClient(ControlService, transport),
  };
}

/** A transport whose unary calls end, also where nobody answers. */
function withTimeout(transport: Transport, defaultMs: number): Transport {
  return {
    unary: (method, signal, timeoutMs = defaultMs, ...rest) =>
      transport.unary(method, signal, timeoutMs, ...rest),
    stream: (...call) => transport.stream(...call),
  };
}
