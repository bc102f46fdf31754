import type {
  DescMessage,
  DescMethod,
  DescService,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import { NotImplementedError } from '@writ/kernel';
import type { Telemetry } from '@writ/telemetry';

/** How one call is made. */
export interface CallOptions {
  /** Cancels the call, also on the server (SUP-6). */
  readonly signal?: AbortSignal;
  /** Longest the call may take, ms. Default: the client's own for unary calls, none for streams. */
  readonly timeoutMs?: number;
  readonly agentToken?: string;
  readonly slotGrant?: string;
  /** Epoch of the worker's lease (RT-2). */
  readonly epoch?: bigint;
  readonly headers?: Readonly<Record<string, string>>;
  /** The call is idempotent: make it again on UNAVAILABLE, within its deadline. Unary only. */
  readonly retry?: boolean;
  /** With `retry`: make it again on ABORTED too. */
  readonly retryAborted?: boolean;
}

/** How a client makes idempotent calls again: exponential back-off with full jitter. */
export interface RetryOptions {
  /** Upper bound of the first wait, ms; doubles with each attempt. Default 50. */
  readonly initialDelayMs?: number;
  /** Upper bound of any wait, ms. Default 2,000. */
  readonly maxDelayMs?: number;
  /** Most attempts, the first included. Default 5. */
  readonly maxAttempts?: number;
}

/** What a client needs. */
export interface RpcClientOptions {
  /** `host:port`; a function is asked at the first call, when the channel is made. */
  readonly address: string | (() => string);
  readonly telemetry: Telemetry;
  /** Gives the token that proves which service calls. */
  readonly serviceToken?: () => Promise<string>;
  /** Default time limit of unary calls, ms. Default 10,000. */
  readonly timeoutMs?: number;
  readonly retry?: RetryOptions;
}

type MethodCall<M extends Pick<DescMethod, 'input' | 'output' | 'methodKind'>> =
  M['methodKind'] extends 'unary'
    ? UnaryCall<M['input'], M['output']>
    : M['methodKind'] extends 'server_streaming'
      ? StreamCall<M['input'], M['output']>
      : never;

type UnaryCall<I extends DescMessage, O extends DescMessage> = (
  request: MessageInitShape<I>,
  options?: CallOptions,
) => Promise<MessageShape<O>>;

type StreamCall<I extends DescMessage, O extends DescMessage> = (
  request: MessageInitShape<I>,
  options?: CallOptions,
) => AsyncIterable<MessageShape<O>>;

/** A function for every unary and server-streaming method of a service. */
export type RpcClient<S extends DescService> = {
  readonly [K in keyof S['method']]: MethodCall<S['method'][K]>;
};

/** A client and the way to end it. */
export type ClosableRpcClient<S extends DescService> = RpcClient<S> & {
  /** Closes the connection; calls under way fail with CANCELLED or UNAVAILABLE. Idempotent. */
  close(): void;
};

/**
 * A typed client of `service` over gRPC. Calls throw the named errors that the server threw
 * (SYS-3), carry the active trace (SYS-1) and, when unary, always a deadline (SUP-5).
 */
export function createRpcClient<S extends DescService>(
  _service: S,
  _options: RpcClientOptions,
): ClosableRpcClient<S> {
  throw new NotImplementedError('NOT_IMPLEMENTED_YET', 'The client is not there yet.');
}
