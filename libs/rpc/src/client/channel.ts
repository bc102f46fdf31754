import {
  type CallOptions,
  type ChannelCredentials,
  Client,
  credentials,
  type Metadata,
} from '@grpc/grpc-js';
import { UnavailableError } from '@writ/kernel';
import type { Telemetry } from '@writ/telemetry';
import { METADATA } from '../caller.ts';
import { assertSize, type Loopback, type LoopbackServer } from '../loopback/loopback.ts';
import { replicaPolicy } from '../replicas/replica-balancer.ts';
import { ReplicaWatch, type RequiredHealth, WATCH_OPTION } from '../replicas/replica-health.ts';
import { replicaTarget } from '../replicas/replica-resolver.ts';
import type { ChannelTls } from '../tls/channel-tls.ts';

/** Options of a {@link Channel}. */
interface ChannelOptions {
  readonly address: string | (() => string);
  readonly maxMessageBytes: number;
  readonly tls: ChannelTls | undefined;
  /** Full name of the called service. */
  readonly service: string;
  readonly health: RequiredHealth;
  readonly telemetry: Telemetry;
  /** Servers of this process, called without a connection. */
  readonly loopback: Loopback | undefined;
  /** Receives the time of the called service with each response over a connection. */
  readonly onPeerTime: ((timeMs: number) => void) | undefined;
}

/**
 * Keepalive of a channel with health checks: an unresponsive connection and its calls fail after six
 * seconds. Servers do not count these pings as abuse because health check responses arrive in between.
 */
const WATCHED_CONNECTION = { 'grpc.keepalive_time_ms': 2_000, 'grpc.keepalive_timeout_ms': 4_000 };
/**
 * Keepalive of a channel without health checks: detects a dead peer of an idle stream. Other gRPC
 * servers treat pings more often than every five minutes as abuse.
 */
const UNWATCHED_CONNECTION = { 'grpc.keepalive_time_ms': 310_000 };

/** Milliseconds since 1970. */
const TIME_PATTERN = /^\d{1,15}$/;

/** The grpc-js client of one set of certificates, and the number of calls in flight on it. */
interface Link {
  readonly client: Client;
  readonly credentials: ChannelCredentials;
  calls: number;
}

/** Messages pass through grpc-js as bytes; the client encodes and decodes them itself. */
const asBytes = (bytes: Buffer): Buffer => bytes;

/** The connections to all replicas of one peer; opened by the first call. */
export class Channel {
  readonly #options: ChannelOptions;
  readonly #cleartext = credentials.createInsecure();
  #link: Link | undefined;
  readonly #replaced = new Set<Link>();
  #address: string | undefined;
  #isClosed = false;

  constructor(options: ChannelOptions) {
    this.#options = options;
  }

  /**
   * Returns `host:port`, or a comma-separated list. If `address` is a function, this method calls the function and
   * caches the returned address. An error is not cached.
   * @throws the error of the `address` function
   */
  address(): string {
    const { address } = this.#options;
    this.#address ??= typeof address === 'string' ? address : address();
    return this.#address;
  }

  /** Whether a call would be made without a connection, to a server of this process. */
  isLocal(path: string): boolean {
    try {
      return this.#local(path) !== undefined;
    } catch {
      // The call itself then fails with the error of the `address` function.
      return false;
    }
  }

  /**
   * Makes a unary call. Rejects with the error of grpc-js, the reason of the signal if it is aborted before the call is
   * sent, or CLIENT_CLOSED.
   */
  unary(path: string, request: Buffer, metadata: Metadata, options: StartOptions): Promise<Buffer> {
    const { signal, ...callOptions } = options;
    const local = this.#local(path);
    const needsServing = this.#options.health === 'serving';
    if (local !== undefined)
      return this.#checkSize(local.unary(path, request, { metadata, needsServing, ...options }));
    return new Promise((resolve, reject) => {
      // An aborted signal emits no further event, so the listener below would not cancel the call.
      signal?.throwIfAborted();
      const link = this.#begin();
      const call = link.client.makeUnaryRequest(
        path,
        asBytes,
        asBytes,
        request,
        metadata,
        callOptions,
        (error, response) => {
          this.#end(link);
          signal?.removeEventListener('abort', cancel);
          if (error !== null) reject(error);
          else if (response === undefined) reject(new TypeError('grpc-js returned no response.'));
          else resolve(response);
        },
      );
      call.on('status', ({ metadata: trailers }) => this.#readTime(trailers));
      const cancel = (): void => call.cancel();
      signal?.addEventListener('abort', cancel, { once: true });
    });
  }

  /** Makes a server-streaming call; throws like {@link unary}. Ending the iteration cancels the call. */
  async *stream(
    path: string,
    request: Buffer,
    metadata: Metadata,
    options: StartOptions,
  ): AsyncGenerator<Buffer, void> {
    const { signal, ...callOptions } = options;
    const local = this.#local(path);
    const needsServing = this.#options.health === 'serving';
    if (local !== undefined) {
      for await (const message of local.stream(path, request, {
        metadata,
        needsServing,
        ...options,
      })) {
        assertSize(message, this.#options.maxMessageBytes);
        yield message;
      }
      return;
    }
    signal?.throwIfAborted();
    const link = this.#begin();
    const call = link.client.makeServerStreamRequest<Buffer, Buffer>(
      path,
      asBytes,
      asBytes,
      request,
      metadata,
      callOptions,
    );
    const cancel = (): void => call.cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    call.on('status', ({ metadata: trailers }) => this.#readTime(trailers));
    call.on('error', () => {
      // The iterator throws the error. Without this listener, an error after the iteration, such as the status of a
      // cancelled call, would be unhandled and terminate the process.
    });
    try {
      yield* call.iterator({ destroyOnReturn: false });
    } finally {
      signal?.removeEventListener('abort', cancel);
      call.cancel();
      this.#end(link);
    }
  }

  /** The server of this process that serves `path` at the address of this channel, if any. */
  #local(path: string): LoopbackServer | undefined {
    const { loopback, tls } = this.#options;
    if (loopback === undefined || tls !== undefined || this.#isClosed) return undefined;
    const server = loopback.find(this.address());
    return server?.serves(path) === true ? server : undefined;
  }

  #readTime(trailers: Metadata): void {
    const text = trailers.get(METADATA.time)[0];
    if (typeof text === 'string' && TIME_PATTERN.test(text))
      this.#options.onPeerTime?.(Number(text));
  }

  async #checkSize(response: Promise<Buffer>): Promise<Buffer> {
    const message = await response;
    assertSize(message, this.#options.maxMessageBytes);
    return message;
  }

  /** Whether further calls fail with CLIENT_CLOSED. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Closes all connections; idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#link?.client.close();
    for (const { client } of this.#replaced) client.close();
  }

  /** Returns the link for a new call; opens a new link when the certificates have changed. */
  #begin(): Link {
    if (this.#isClosed) {
      throw new UnavailableError('CLIENT_CLOSED', 'The client is closed; create a new one.');
    }
    const wanted = this.#options.tls?.credentials() ?? this.#cleartext;
    let link = this.#link;
    if (link === undefined || link.credentials !== wanted) {
      const old = link;
      link = { client: this.#connect(wanted), credentials: wanted, calls: 0 };
      this.#link = link;
      if (old !== undefined) this.#retire(old);
    }
    link.calls += 1;
    return link;
  }

  #end(link: Link): void {
    link.calls -= 1;
    if (this.#replaced.has(link)) this.#retire(link);
  }

  /** Closes a replaced link once its last call in flight has ended. */
  #retire(link: Link): void {
    this.#replaced.add(link);
    if (link.calls > 0) return;
    this.#replaced.delete(link);
    link.client.close();
  }

  #connect(secured: ChannelCredentials): Client {
    const { tls } = this.#options;
    const watch = new ReplicaWatch(this.#options);
    const client = new Client(replicaTarget(this.address()), secured, {
      'grpc.max_receive_message_length': this.#options.maxMessageBytes,
      'grpc.max_send_message_length': -1,
      'grpc.service_config': replicaPolicy(),
      [WATCH_OPTION]: watch,
      // Ignores the HTTP proxy of the environment variables, because services connect to each other directly.
      'grpc.enable_http_proxy': 0,
      'grpc.enable_channelz': 0,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 3_000,
      ...(watch.isEnabled ? WATCHED_CONNECTION : UNWATCHED_CONNECTION),
      ...(tls && { 'grpc.ssl_target_name_override': tls.serverName }),
    });
    watch.client = client;
    return client;
  }
}

interface StartOptions extends Pick<CallOptions, 'deadline'> {
  readonly signal?: AbortSignal | undefined;
}
