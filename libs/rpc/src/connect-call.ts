import type { Message } from '@bufbuild/protobuf';
import { isFieldError } from '@bufbuild/protobuf/reflect';
import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect';
import { InvalidRequestError, OverloadedError, type WritError } from '@writ/kernel';
import type { Calls } from './calls.ts';
import { encodeAnswer } from './encode-answer.ts';
import { errorOf } from './error-details.ts';
import { toConnectError } from './errors.ts';
import { InvalidFieldsError } from './invalid-fields-error.ts';
import type { ServedMethod } from './served-service.ts';
import type { ServerCall } from './server-call.ts';

/** One call as Connect sees it: errors leave as ConnectErrors, its signal tells the end. */
export class ConnectCall {
  readonly #call: ServerCall;
  readonly #maxMessageBytes: number;
  /** Whether a handler has the call, and so will end it. */
  #isHandled = false;
  #isAnswered = false;

  constructor(calls: Calls, served: ServedMethod, context: HandlerContext, maxBytes: number) {
    this.#maxMessageBytes = maxBytes;
    const { requestHeader, signal } = context;
    this.#call = calls.open(served, {
      rpcSystem: context.protocolName === 'connect' ? 'connect_rpc' : 'grpc',
      timeoutMs: context.timeoutMs(),
      header: (name) => requestHeader.get(name) ?? undefined,
    });
    // Connect aborts it when the client goes away, and also when the call is over, with the error
    // it is about to send, if any.
    if (signal.aborted) this.#over(signal.reason);
    else signal.addEventListener('abort', () => this.#over(signal.reason), { once: true });
  }

  /** Runs before Connect reads content. */
  async admit(): Promise<void> {
    try {
      await this.#call.admit();
    } catch (error) {
      throw toConnectError(this.#call.end(error));
    }
  }

  async answer(request: Message): Promise<Message> {
    this.#isHandled = true;
    try {
      const response = await this.#call.answer(request);
      encodeAnswer(this.#call.served, response, this.#maxMessageBytes);
      this.#isAnswered = true;
      return response;
    } catch (error) {
      throw toConnectError(this.#call.end(error));
    }
  }

  async *stream(request: Message | AsyncIterable<Message>): AsyncGenerator<Message, void> {
    this.#isHandled = true;
    try {
      for await (const message of this.#call.stream(request)) {
        encodeAnswer(this.#call.served, message, this.#maxMessageBytes);
        yield message;
      }
      this.#isAnswered = true;
    } catch (error) {
      throw toConnectError(this.#call.end(error));
    } finally {
      if (!this.#isAnswered) this.#cancelled();
    }
  }

  #over(reason: unknown): void {
    const own = reason instanceof ConnectError ? ownError(this.#call.served, reason) : undefined;
    if (own !== undefined) explain(reason, this.#call.end(own));
    else if (this.#isAnswered) this.#call.end();
    else if (this.#isHandled) this.#call.cancel();
    else this.#cancelled();
  }

  #cancelled(): void {
    this.#call.cancel();
    this.#call.end(this.#call.signal.reason);
  }
}

/** What Connect has found wrong by itself, such as malformed JSON; undefined when it has not. */
function ownError(served: ServedMethod, error: ConnectError): WritError | undefined {
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
        ? new InvalidRequestError('MALFORMED_MESSAGE', `The request is no valid ${typeName}.`, {
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

/** Connect sends `error` once the listeners of its signal have run, as it is then. */
function explain(error: unknown, named: WritError | undefined): void {
  if (!(error instanceof ConnectError) || named === undefined) return;
  const { code, rawMessage, details } = toConnectError(named);
  Object.assign(error, { code, rawMessage, details });
}
