import {
  type CallOptions,
  type ChannelCredentials,
  Client,
  credentials,
  type Metadata,
} from '@grpc/grpc-js';
import { UnavailableError } from '@writ/kernel';
import type { Telemetry } from '@writ/telemetry';
import { assertSize, type Loopback, type LoopbackServer } from './loopback.ts';
import { replicaPolicy } from './replicas/replica-balancer.ts';
import { replicaTarget } from './replicas/replica-resolver.ts';
import { type ReplicaHealth, ReplicaWatch, WATCH_OPTION } from './replicas/replica-watch.ts';
import type { ChannelTls } from './tls/channel-tls.ts';

/** What a {@link Channel} needs. */
interface ChannelOptions {
  readonly address: string | (() => string);
  readonly maxMessageBytes: number;
  readonly tls: ChannelTls | undefined;
  /** Full name of the service that is called. */
  readonly service: string;
  readonly health: ReplicaHealth;
  readonly telemetry: Telemetry;
  /** Servers of this process, which are called without a connection. */
  readonly loopback: Loopback | undefined;
}

/**
 * How soon a connection that nobody hears at the other end is given up, with the calls on it. Its
 * pings are not taken for abuse, since the answers to health checks come between them.
 */
const WATCHED_CONNECTION = { 'grpc.keepalive_time_ms': 2_000, 'grpc.keepalive_timeout_ms': 4_000 };
/**
 * Finds a peer that vanished under a silent stream. More often than every five minutes is taken for
 * abuse by servers of other makes.
 */
const UNWATCHED_CONNECTION = { 'grpc.keepalive_time_ms': 310_000 };

/** Connections that were made with the same certificates, and the calls on them. */
interface Link {
  readonly client: Client;
  readonly credentials: ChannelCredentials;
  calls: number;
}

/** Messages pass through grpc-js as bytes; the client encodes and decodes them itself. */
const asBytes = (bytes: Buffer): Buffer => bytes;

/** The connections to one peer, with all its replicas, made at the first call. */
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
   * `host:port`, or several with commas between; asked for once.
   * @throws whatever the function that knows it throws
   */
  address(): string {
    const { address } = this.#options;
    this.#address ??= typeof address === 'string' ? address : address();
    return this.#address;
  }

  /** Makes a unary call; rejects with grpc-js's own error. */
  unary(path: string, request: Buffer, metadata: Metadata, options: StartOptions): Promise<Buffer> {
    const { signal, ...callOptions } = options;
    const local = this.#local(path);
    if (local !== undefined)
      return this.#answerOf(local.unary(path, request, { metadata, ...options }));
    return new Promise((resolve, reject) => {
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
          else if (response === undefined) reject(new TypeError('grpc-js gave no response.'));
          else resolve(response);
        },
      );
      const cancel = (): void => call.cancel();
      signal?.addEventListener('abort', cancel, { once: true });
    });
  }

  /** Makes a server-streaming call; throws grpc-js's own error. Ending the iteration cancels it. */
  async *stream(
    path: string,
    request: Buffer,
    metadata: Metadata,
    options: StartOptions,
  ): AsyncGenerator<Buffer, void> {
    const { signal, ...callOptions } = options;
    const local = this.#local(path);
    if (local !== undefined) {
      for await (const message of local.stream(path, request, { metadata, ...options })) {
        assertSize(message, this.#options.maxMessageBytes);
        yield message;
      }
      return;
    }
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
    call.on('error', () => {
      // The iteration throws it. One that comes when nobody iterates any more, such as the answer
      // to a cancel, would end the process if nobody listened.
    });
    try {
      yield* call.iterator({ destroyOnReturn: false });
    } finally {
      signal?.removeEventListener('abort', cancel);
      call.cancel();
      this.#end(link);
    }
  }

  /** The server of this process that a call to `path` reaches without a connection, if there is one. */
  #local(path: string): LoopbackServer | undefined {
    const { loopback, tls } = this.#options;
    if (loopback === undefined || tls !== undefined || this.#isClosed) return undefined;
    const server = loopback.find(this.address());
    return server?.serves(path) === true ? server : undefined;
  }

  async #answerOf(answer: Promise<Buffer>): Promise<Buffer> {
    const message = await answer;
    assertSize(message, this.#options.maxMessageBytes);
    return message;
  }

  /** Closes the connections; idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#link?.client.close();
    for (const { client } of this.#replaced) client.close();
  }

  /** The connections that a new call takes: other ones after the certificates have changed. */
  #begin(): Link {
    if (this.#isClosed) {
      throw new UnavailableError('CLIENT_CLOSED', 'The client was closed; make a new one.');
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

  /** Calls under way end where they began. */
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
      // Peers are never behind the proxy that the environment names for the internet.
      'grpc.enable_http_proxy': 0,
      'grpc.enable_channelz': 0,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 3_000,
      ...(watch.asks ? WATCHED_CONNECTION : UNWATCHED_CONNECTION),
      ...(tls && { 'grpc.ssl_target_name_override': tls.serverName }),
    });
    watch.client = client;
    return client;
  }
}

interface StartOptions extends Pick<CallOptions, 'deadline'> {
  readonly signal?: AbortSignal | undefined;
}
