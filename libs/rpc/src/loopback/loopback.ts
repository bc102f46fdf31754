import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import type { Message } from '@bufbuild/protobuf';
import { type Deadline, type Metadata, status } from '@grpc/grpc-js';
import { OverloadedError } from '@writ/kernel';
import type { Calls } from '../calls/calls.ts';
import { encodeResponse } from '../calls/encode-response.ts';
import type { ServedMethod, ServedService } from '../calls/served-service.ts';
import type { ServerCall } from '../calls/server-call.ts';
import { toGrpcStatus } from '../errors/grpc-errors.ts';
import { unsentMetadata } from '../errors/unsent-call.ts';
import { decodeRequest } from '../server/grpc-methods.ts';
import { MessageQueue } from './message-queue.ts';

/** Maximum time that a call waits for its server to start, ms. */
const MAX_WAIT_MS = 30_000;

/**
 * A registry of the servers of one process, by address. A client with the same registry calls them without HTTP/2
 * (SYS-5). Gate, deadline, validation, limits, errors, spans and metrics use the same code as for calls over HTTP/2.
 * Messages are passed as bytes, so client and server share no objects.
 */
export class Loopback {
  readonly #servers = new Map<string, LoopbackServer>();

  /** The server of this process that listens on `address`. */
  find(address: string): LoopbackServer | undefined {
    return this.#servers.get(address);
  }

  /** Makes `server` reachable at `address`. A closed server stays reachable and rejects calls with DRAINING. */
  add(address: string, server: LoopbackServer): void {
    this.#servers.set(address, server);
  }
}

/** Metadata, deadline and cancellation of a call. */
export interface LoopbackCallOptions {
  readonly metadata: Metadata;
  readonly deadline?: Deadline | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Whether the server must report SERVING before the call starts; true for clients with health checks. */
  readonly needsServing: boolean;
}

interface Parts {
  readonly address: string;
  readonly calls: Calls;
  readonly services: readonly ServedService[];
  readonly maxMessageBytes: number;
}

/** Serves the methods of a gRPC server to clients of the same process. */
export class LoopbackServer {
  readonly #calls: Calls;
  readonly #methods: ReadonlyMap<string, ServedMethod>;
  readonly #maxMessageBytes: number;
  readonly #address: string;
  readonly #started = Promise.withResolvers<void>();
  #state: 'starting' | 'serving' | 'not_serving' = 'starting';
  // Runs handlers outside of the async context of the caller, so that they do not inherit its transaction or trace.
  readonly #outside = AsyncLocalStorage.snapshot();

  constructor({ address, calls, services, maxMessageBytes }: Parts) {
    this.#address = address;
    this.#calls = calls;
    this.#maxMessageBytes = maxMessageBytes;
    const methods = services.flatMap((service) => service.methods);
    this.#methods = new Map(methods.map((served) => [`/${served.name}`, served]));
  }

  /** Whether the server has the method at `path`, such as `/writ.run.v1.RunService/StartRun`. */
  serves(path: string): boolean {
    return this.#methods.has(path);
  }

  /** Follows the health of the server. A closed server is set to serving, so that calls fail with DRAINING. */
  setServing(isServing: boolean): void {
    if (isServing) {
      this.#state = 'serving';
      this.#started.resolve();
    } else if (this.#state === 'serving') this.#state = 'not_serving';
  }

  /**
   * Makes a unary call; rejects with an error that has the shape of a grpc-js error, or with the reason of the signal if
   * it is aborted before the call starts.
   */
  unary(path: string, request: Buffer, options: LoopbackCallOptions): Promise<Buffer> {
    return this.#outside(async () => {
      if (options.needsServing && this.#state !== 'serving') await this.#untilServing(options);
      const { call, served, release } = this.#open(path, request, options);
      try {
        await call.admit();
        const { input } = served.implementation.method;
        const response = this.#encode(
          served,
          await call.handleUnary(decodeRequest(input, request)),
        );
        call.end();
        return response;
      } catch (error) {
        throw serviceError(call.end(error));
      } finally {
        release();
      }
    });
  }

  /** Makes a server-streaming call; throws like {@link unary}. Ending the iteration cancels the call. */
  async *stream(
    path: string,
    request: Buffer,
    options: LoopbackCallOptions,
  ): AsyncGenerator<Buffer, void> {
    if (options.needsServing && this.#state !== 'serving') await this.#untilServing(options);
    const queue = new MessageQueue();
    const { call, served, release } = this.#outside(() => this.#open(path, request, options));
    void this.#outside(() => this.#pump(call, served, request, queue));
    try {
      yield* queue;
    } finally {
      release();
      call.cancel();
    }
  }

  /**
   * Waits for the start of the server, up to the deadline of the call and at most 30 seconds.
   * @throws the error of a call to a replica that reports NOT_SERVING, if the server is not serving after the wait; the
   *   reason of `signal` when the signal is aborted
   */
  async #untilServing({ deadline, signal }: LoopbackCallOptions): Promise<void> {
    const leftMs = deadline === undefined ? MAX_WAIT_MS : Number(deadline) - Date.now();
    const limit = AbortSignal.timeout(Math.min(Math.max(leftMs, 0), MAX_WAIT_MS));
    const waitEnd = signal === undefined ? limit : AbortSignal.any([limit, signal]);
    if (this.#state === 'starting' && !waitEnd.aborted) {
      await Promise.race([this.#started.promise, once(waitEnd, 'abort')]);
    }
    signal?.throwIfAborted();
    if (this.#state !== 'serving') throw notServing(this.#address);
  }

  /** Runs the handler ahead of the reader up to the capacity of the queue, like HTTP/2 flow control. */
  async #pump(
    call: ServerCall,
    served: ServedMethod,
    request: Buffer,
    queue: MessageQueue,
  ): Promise<void> {
    try {
      await call.admit();
      const { input } = served.implementation.method;
      for await (const message of call.handleStream(decodeRequest(input, request))) {
        await queue.push(this.#encode(served, message), call.signal);
      }
      queue.end();
      call.end();
    } catch (error) {
      queue.fail(serviceError(call.end(error)));
    }
  }

  #open(path: string, request: Buffer, { metadata, deadline, signal }: LoopbackCallOptions) {
    const served = this.#methods.get(path);
    if (served === undefined) throw new TypeError(`${path} is not a method of this server.`);
    assertSize(request, this.#maxMessageBytes);
    // An aborted signal emits no further event, so the listener below would not cancel the call.
    signal?.throwIfAborted();
    const call = this.#calls.open(served, {
      rpcSystem: 'grpc',
      timeoutMs: deadline === undefined ? undefined : Number(deadline) - Date.now(),
      header: (name) => metadata.get(name)[0]?.toString(),
    });
    const cancel = (): void => call.cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    return { call, served, release: () => signal?.removeEventListener('abort', cancel) };
  }

  #encode(served: ServedMethod, message: Message): Buffer {
    const bytes = encodeResponse(served, message, this.#maxMessageBytes);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
}

/** @throws the status with which grpc-js rejects a message over the limit */
export function assertSize(message: Buffer, limit: number): void {
  if (message.byteLength <= limit) return;
  const sentence = `Received message larger than max (${message.byteLength} vs ${limit})`;
  throw serviceError(new OverloadedError('MESSAGE_TOO_LARGE', sentence));
}

/** The error of a call to a replica that reports NOT_SERVING, the same as over the network. */
function notServing(address: string): Error {
  const details = `no replica available: ${address} reports NOT_SERVING.`;
  return Object.assign(new Error(details), {
    code: status.UNAVAILABLE,
    details,
    metadata: unsentMetadata(),
  });
}

/** Converts an error to the shape of a grpc-js error, so that the client handles both transports alike. */
function serviceError(error: unknown): Error {
  const status = toGrpcStatus(error);
  return Object.assign(new Error(status.details), status);
}
