import { once } from 'node:events';
import type { PeerCertificate } from 'node:tls';
import { type DescMessage, fromBinary, type Message } from '@bufbuild/protobuf';
import type {
  Deadline,
  handleBidiStreamingCall,
  handleServerStreamingCall,
  handleUnaryCall,
  Metadata,
  Server,
  ServerDuplexStream,
  ServerWritableStream,
} from '@grpc/grpc-js';
import { InvalidRequestError } from '@writ/kernel';
import type { Calls } from '../calls/calls.ts';
import { encodeResponse } from '../calls/encode-response.ts';
import type { ServedMethod, ServedService } from '../calls/served-service.ts';
import type { ServerCall } from '../calls/server-call.ts';
import { toGrpcStatus } from '../errors/grpc-errors.ts';
import { sessionOf } from '../grpc-js-internals.ts';
import { peerUris } from '../tls/grpc-connections.ts';
import { raiseStreamLimit } from './stream-limit.ts';

/**
 * grpc-js passes messages on as bytes. The methods decode them after the gate, so that an unauthorized caller does not
 * learn whether its message is valid.
 */
const asBytes = (bytes: Buffer): Buffer => bytes;

/** The common part of all grpc-js server calls. */
interface Wire {
  readonly metadata: Metadata;
  getDeadline(): Deadline;
  getAuthContext(): { readonly sslPeerCertificate?: PeerCertificate };
  on(event: 'cancelled', listener: () => void): unknown;
}

/** Registers the methods of services with a grpc-js server. */
export class GrpcMethods {
  readonly #calls: Calls;
  readonly #maxMessageBytes: number;

  constructor(calls: Calls, maxMessageBytes: number) {
    this.#calls = calls;
    this.#maxMessageBytes = maxMessageBytes;
  }

  /** Registers every method of `service` with `server`. */
  register(server: Server, { methods }: ServedService): void {
    for (const served of methods) {
      const path = `/${served.name}`;
      switch (served.implementation.kind) {
        case 'unary':
          server.register(path, this.#unary(served), asBytes, asBytes, 'unary');
          break;
        case 'server_streaming':
          server.register(path, this.#stream(served), asBytes, asBytes, 'serverStream');
          break;
        case 'bidi_streaming':
          server.register(path, this.#bidi(served), asBytes, asBytes, 'bidi');
          break;
      }
    }
  }

  #unary(served: ServedMethod): handleUnaryCall<Buffer, Buffer> {
    const { input } = served.implementation.method;
    return (wire, respond) => {
      const call = this.#open(served, wire);
      const handle = async (): Promise<Buffer> => {
        await call.admit();
        return this.#encode(served, await call.handleUnary(decodeRequest(input, wire.request)));
      };
      handle().then(
        (bytes) => {
          respond(null, bytes);
          call.end();
        },
        (error: unknown) => respond(toGrpcStatus(call.end(error))),
      );
    };
  }

  #stream(served: ServedMethod): handleServerStreamingCall<Buffer, Buffer> {
    const { input } = served.implementation.method;
    return (wire) => {
      const call = this.#open(served, wire);
      void this.#pump(call, wire, () => call.handleStream(decodeRequest(input, wire.request)));
    };
  }

  #bidi(served: ServedMethod): handleBidiStreamingCall<Buffer, Buffer> {
    const { input } = served.implementation.method;
    async function* requests(wire: ServerDuplexStream<Buffer, Buffer>): AsyncIterable<Message> {
      // When the client has sent its last request, the stream must stay open for the remaining responses.
      for await (const bytes of wire.iterator({ destroyOnReturn: false })) {
        yield decodeRequest(input, bytes);
      }
    }
    return (wire) => {
      const call = this.#open(served, wire);
      void this.#pump(call, wire, () => call.handleStream(requests(wire)));
    };
  }

  async #pump(
    call: ServerCall,
    wire: ServerWritableStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>,
    messages: () => AsyncIterable<Message>,
  ): Promise<void> {
    try {
      await call.admit();
      for await (const message of messages()) {
        const hasCapacity = wire.write(this.#encode(call.served, message));
        if (!hasCapacity) await once(wire, 'drain', { signal: call.signal });
      }
      wire.end();
      call.end();
    } catch (error) {
      const failure = call.end(error);
      if (!wire.cancelled) wire.emit('error', toGrpcStatus(failure));
    }
  }

  #open(served: ServedMethod, wire: Wire): ServerCall {
    const deadline = Number(wire.getDeadline());
    const call = this.#calls.open(served, {
      rpcSystem: 'grpc',
      timeoutMs: deadline === Infinity ? undefined : deadline - Date.now(),
      peerUris: peerUris(wire.getAuthContext().sslPeerCertificate),
      onAuthenticated: () => raiseStreamLimit(sessionOf(wire)),
      header: (name) => wire.metadata.get(name)[0]?.toString(),
    });
    // grpc-js emits `cancelled` after every call; `disconnect` has no effect on a call that has ended.
    wire.on('cancelled', () => call.disconnect());
    return call;
  }

  #encode(served: ServedMethod, message: Message): Buffer {
    const bytes = encodeResponse(served, message, this.#maxMessageBytes);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
}

/**
 * Decodes `bytes` as a message of `schema`.
 * @throws InvalidRequestError MALFORMED_MESSAGE
 */
export function decodeRequest(schema: DescMessage, bytes: Buffer): Message {
  try {
    return fromBinary(schema, bytes);
  } catch (cause) {
    throw new InvalidRequestError(
      'MALFORMED_MESSAGE',
      `The request is not a valid ${schema.typeName}.`,
      { message_type: schema.typeName },
      { cause },
    );
  }
}
