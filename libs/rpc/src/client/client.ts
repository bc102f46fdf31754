import type {
  DescMessage,
  DescMethod,
  DescService,
  Message,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel as Idempotency } from '@bufbuild/protobuf/wkt';
import { type Clock, isWritError, systemClock } from '@writ/kernel';
import { type Context, context, type Telemetry } from '@writ/telemetry';
import { withDefaults } from '../limits.ts';
import type { Loopback } from '../loopback/loopback.ts';
import type { RequiredHealth } from '../replicas/replica-health.ts';
import type { ChannelTls } from '../tls/channel-tls.ts';
import type { CallOptions } from './call-options.ts';
import { Channel } from './channel.ts';
import { ClientCall, type Peer } from './client-call.ts';
import { type RetryOptions, retrying } from './retry.ts';

/** Options of an RPC client. */
export interface RpcClientOptions {
  /**
   * `host:port`, or a comma-separated list of replicas. If `address` is a function, the first RPC calls the function,
   * and the client caches the returned address. An error is not cached, so the next RPC calls the function again.
   */
  readonly address: string | (() => string);
  readonly telemetry: Telemetry;
  /** Returns the token that authenticates the calling service; called before every attempt. */
  readonly serviceToken?: () => Promise<string>;
  /** Default timeout of unary calls, ms. Default 10,000. */
  readonly timeoutMs?: number;
  readonly retry?: RetryOptions;
  /** Largest response message, bytes. Default 4 MiB. */
  readonly maxMessageBytes?: number;
  /** TLS settings; connections use cleartext if omitted. */
  readonly tls?: ChannelTls | undefined;
  /**
   * Which replicas receive calls. `serving` (default): replicas that answer health checks (grpc.health.v1) and do not
   * report NOT_SERVING; a server without the health service is considered serving. `responding`: additionally replicas
   * that report NOT_SERVING. `unchecked`: all replicas, without health checks, for peers that are not part of Writ.
   */
  readonly health?: RequiredHealth;
  /** Servers of this process, which are called without HTTP/2 (SYS-5). If omitted, every call uses a connection. */
  readonly loopback?: Loopback | undefined;
  /** Clock that provides the time sent with calls that have a service token (BD-3); default: the system clock. */
  readonly clock?: Clock;
  /** Receives the time of the called service with each response over a connection, ms since 1970 (BD-3). */
  readonly onPeerTime?: ((timeMs: number) => void) | undefined;
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

/** A client that owns its connections. */
export type ClosableRpcClient<S extends DescService> = RpcClient<S> & {
  /** Closes the connections; further calls fail with UNAVAILABLE. Idempotent. */
  close(): void;
};

type MessageInit = MessageInitShape<DescMessage>;

const DEFAULT_TIMEOUT_MS = 10_000;

/**
 * Creates a typed gRPC client of `service`. Calls throw the named errors of the server (SYS-3) and
 * propagate the active trace (SYS-1); unary calls always have a deadline (SUP-5). A stream starts when
 * it is iterated and is cancelled when the iteration ends early.
 */
export function createRpcClient<S extends DescService>(
  service: S,
  options: RpcClientOptions,
): ClosableRpcClient<S> {
  const channel = new Channel({
    address: options.address,
    tls: options.tls,
    maxMessageBytes: options.maxMessageBytes ?? withDefaults().maxMessageBytes,
    service: service.typeName,
    health: options.health ?? 'serving',
    loopback: options.loopback,
    telemetry: options.telemetry,
    onPeerTime: options.onPeerTime,
  });
  const { telemetry, serviceToken, timeoutMs = DEFAULT_TIMEOUT_MS, retry = {} } = options;
  const { clock = systemClock } = options;
  const peer: Peer = { channel, telemetry, serviceToken, clock };
  const calls = service.methods.map((method) => {
    const call =
      method.methodKind === 'unary'
        ? (init: MessageInit, callOptions: CallOptions = {}) =>
            callUnary({ ...peer, retry }, method, init, {
              ...callOptions,
              timeoutMs: callOptions.timeoutMs ?? timeoutMs,
            })
        : (init: MessageInit, callOptions: CallOptions = {}) =>
            callStream(peer, method, init, callOptions, context.active());
    return [method.localName, call] as const;
  });
  const client = { ...Object.fromEntries(calls), close: () => channel.close() };
  return client as unknown as ClosableRpcClient<S>;
}

async function callUnary(
  { retry, ...peer }: Peer & { readonly retry: RetryOptions },
  method: DescMethod,
  init: MessageInit,
  options: CallOptions,
): Promise<Message> {
  const call = new ClientCall(peer, method, options, context.active());
  const isIdempotent = options.retry ?? method.idempotency !== Idempotency.IDEMPOTENCY_UNKNOWN;
  const work = async (): Promise<Message> => {
    try {
      const request = call.encode(init);
      const { metadata, ...start } = await call.start();
      return call.decode(await peer.channel.unary(call.path, request, metadata, start));
    } catch (error) {
      throw call.failure(error);
    }
  };
  const isRetryable = (error: unknown): boolean => {
    // Calls of a closed client are not retried. Checks `isClosed` instead of the reason code, because a server may also
    // send CLIENT_CLOSED.
    if (!isIdempotent || !isWritError(error) || peer.channel.isClosed) return false;
    return (
      error.kind === 'unavailable' || (error.kind === 'aborted' && options.retryAborted === true)
    );
  };
  const onRetry = (error: unknown): void => call.retried(call.failure(error));
  try {
    const { deadlineAt } = call;
    const attempts = { work, isRetryable, onRetry, deadlineAt, signal: options.signal };
    const response = await context.with(call.context, () => retrying(retry, attempts));
    call.end();
    return response;
  } catch (error) {
    const failure = call.failure(error);
    call.end(failure);
    throw failure;
  }
}

async function* callStream(
  peer: Peer,
  method: DescMethod,
  init: MessageInit,
  options: CallOptions,
  parent: Context,
): AsyncGenerator<Message, void> {
  const call = new ClientCall(peer, method, options, parent);
  try {
    const request = call.encode(init);
    const { metadata, ...start } = await context.with(call.context, () => call.start());
    for await (const bytes of peer.channel.stream(call.path, request, metadata, start)) {
      yield call.decode(bytes);
    }
  } catch (error) {
    const failure = call.failure(error);
    call.end(failure);
    throw failure;
  } finally {
    // Ends the call even if the consumer ends the iteration early.
    call.end();
  }
}
