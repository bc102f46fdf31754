import type { Message } from '@bufbuild/protobuf';
import { isFieldError } from '@bufbuild/protobuf/reflect';
import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect';
import { InvalidRequestError, OverloadedError, type WritError } from '@writ/kernel';
import type { Calls } from '../calls/calls.ts';
import { encodeResponse } from '../calls/encode-response.ts';
import type { ServedMethod } from '../calls/served-service.ts';
import type { ServerCall } from '../calls/server-call.ts';
import { toConnectError } from '../errors/connect-errors.ts';
import { errorOf } from '../errors/error-details.ts';
import { InvalidFieldsError } from '../errors/invalid-fields-error.ts';
import { markAuthenticated, requestKey } from './universal-request.ts';

/** Adapts a {@link ServerCall} to Connect: errors become ConnectErrors, and the signal ends the call. */
export class ConnectCall {
  readonly #call: ServerCall;
  readonly #maxMessageBytes: number;
  /** Whether the handler has started. If it has, the handler ends the call. */
  #isHandled = false;
  #hasResponded = false;

  constructor(calls: Calls, served: ServedMethod, context: HandlerContext, maxBytes: number) {
    this.#maxMessageBytes = maxBytes;
    const { requestHeader, signal } = context;
    this.#call = calls.open(served, {
      rpcSystem: context.protocolName === 'connect' ? 'connect_rpc' : 'grpc',
      timeoutMs: context.timeoutMs(),
      onAuthenticated: () => markAuthenticated(context.values.get(requestKey)),
      header: (name) => requestHeader.get(name) ?? undefined,
    });
    // Connect aborts the signal when the client disconnects, and when the call has ended, with the error
    // that it is about to send, if any.
    if (signal.aborted) this.#aborted(signal.reason);
    else signal.addEventListener('abort', () => this.#aborted(signal.reason), { once: true });
  }

  /** Authenticates and authorizes the call before Connect reads the content. */
  async admit(): Promise<void> {
    try {
      await this.#call.admit();
    } catch (error) {
      throw toConnectError(this.#call.end(error));
    }
  }

  async handleUnary(request: Message): Promise<Message> {
    this.#isHandled = true;
    try {
      const response = await this.#call.handleUnary(request);
      encodeResponse(this.#call.served, response, this.#maxMessageBytes);
      this.#hasResponded = true;
      return response;
    } catch (error) {
      throw toConnectError(this.#call.end(error));
    }
  }

  async *handleStream(request: Message | AsyncIterable<Message>): AsyncGenerator<Message, void> {
    this.#isHandled = true;
    try {
      for await (const message of this.#call.handleStream(request)) {
        encodeResponse(this.#call.served, message, this.#maxMessageBytes);
        yield message;
      }
      this.#hasResponded = true;
    } catch (error) {
      throw toConnectError(this.#call.end(error));
    } finally {
      if (!this.#hasResponded) this.#cancelled();
    }
  }

  #aborted(reason: unknown): void {
    const error =
      reason instanceof ConnectError ? fromTransportError(this.#call.served, reason) : undefined;
    if (error !== undefined) addDetails(reason, this.#call.end(error));
    else if (this.#hasResponded) this.#call.end();
    else if (this.#isHandled) this.#call.cancel();
    else this.#cancelled();
  }

  #cancelled(): void {
    this.#call.cancel();
    this.#call.end(this.#call.signal.reason);
  }
}

/** The named error for an error that Connect raised itself, such as malformed JSON; else undefined. */
function fromTransportError(served: ServedMethod, error: ConnectError): WritError | undefined {
  if (error.details.length > 0) return undefined;
  const { typeName } = served.implementation.method.input;
  switch (error.code) {
    case Code.Canceled:
    case Code.Aborted:
    case Code.DeadlineExceeded:
      return undefined;
    case Code.InvalidArgument:
      return malformed(error, typeName);
    case Code.ResourceExhausted:
      return new OverloadedError('MESSAGE_TOO_LARGE', error.rawMessage);
    case Code.Internal:
      return error.rawMessage.startsWith('parse binary')
        ? new InvalidRequestError('MALFORMED_MESSAGE', `The request is not a valid ${typeName}.`, {
            message_type: typeName,
          })
        : errorOf({ code: error.code, message: error.rawMessage });
    default:
      return errorOf({ code: error.code, message: error.rawMessage });
  }
}

function malformed({ cause, rawMessage }: ConnectError, typeName: string): WritError {
  const metadata = { message_type: typeName };
  const found = cause instanceof Error ? cause.cause : undefined;
  if (!isFieldError(found)) {
    return new InvalidRequestError('MALFORMED_MESSAGE', rawMessage, metadata);
  }
  const field = found.field().name;
  const description = found.message;
  return new InvalidFieldsError(
    [{ field, description }],
    'MALFORMED_MESSAGE',
    `${field}: ${description}`,
    { ...metadata, field },
  );
}

/** Connect sends `error` after the listeners of its signal have run, so changes to it are sent. */
function addDetails(error: unknown, named: WritError | undefined): void {
  if (!(error instanceof ConnectError) || named === undefined) return;
  const { code, rawMessage, details } = toConnectError(named);
  Object.assign(error, { code, rawMessage, details });
}
