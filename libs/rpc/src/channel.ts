import { type CallOptions, Client, credentials, type Metadata } from '@grpc/grpc-js';
import { UnavailableError } from '@writ/kernel';

/** What a {@link Channel} needs. */
interface ChannelOptions {
  readonly address: string | (() => string);
  readonly maxMessageBytes: number;
}

/** Messages pass through grpc-js as bytes; the client encodes and decodes them itself. */
const asBytes = (bytes: Buffer): Buffer => bytes;

/** The connections to one peer, made at the first call. */
export class Channel {
  readonly #options: ChannelOptions;
  #client: Client | undefined;
  #address: string | undefined;
  #isClosed = false;

  constructor(options: ChannelOptions) {
    this.#options = options;
  }

  /**
   * `host:port`, asked for once.
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
    return new Promise((resolve, reject) => {
      const call = this.#connected().makeUnaryRequest(
        path,
        asBytes,
        asBytes,
        request,
        metadata,
        callOptions,
        (error, response) => {
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
    const call = this.#connected().makeServerStreamRequest<Buffer, Buffer>(
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
    }
  }

  /** Closes the connections; idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#client?.close();
  }

  #connected(): Client {
    if (this.#isClosed) {
      throw new UnavailableError('CLIENT_CLOSED', 'The client was closed; make a new one.');
    }
    this.#client ??= new Client(this.address(), credentials.createInsecure(), {
      'grpc.max_receive_message_length': this.#options.maxMessageBytes,
      'grpc.max_send_message_length': -1,
      // Replicas behind one name share the load.
      'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
      'grpc.service_config_disable_resolution': 1,
      // Peers are never behind the proxy that the environment names for the internet.
      'grpc.enable_http_proxy': 0,
      'grpc.enable_channelz': 0,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 3_000,
      // Finds a peer that vanished under a silent stream. More often than every five minutes is
      // taken for abuse by servers of other makes.
      'grpc.keepalive_time_ms': 310_000,
    });
    return this.#client;
  }
}

interface StartOptions extends Pick<CallOptions, 'deadline'> {
  readonly signal?: AbortSignal | undefined;
}
