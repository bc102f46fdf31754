import { create, type DescMessage, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import { CancellationError, InternalError, type WritError, wrapUnknown } from '@writ/kernel';
import { context, type Logger, type Telemetry } from '@writ/telemetry';
import type { Caller, Gate } from '../caller.ts';
import { recordCall } from '../telemetry/call-metrics.ts';
import { CallSpan } from '../telemetry/call-span.ts';
import { callerFields } from '../telemetry/caller-ids.ts';
import { logCall } from '../telemetry/request-log.ts';
import { CallDeadline } from './call-deadline.ts';
import type { CallContext } from './handler.ts';
import type { IncomingCall } from './incoming-call.ts';
import { Interruption } from './interruption.ts';
import type { PacedQueue } from './paced-queue.ts';
import type { ServedMethod } from './served-service.ts';
import { assertValid } from './validation.ts';

/** State that all calls of a server share. */
export interface CallHost {
  readonly gate: Gate;
  readonly telemetry: Telemetry;
  readonly maxUnaryMs: number;
  /** Cancels calls whose clients have disconnected. */
  readonly disconnections: PacedQueue;
  /** Returns the error for a call that must not start; undefined when the call may start. */
  refusal(call: ServerCall): WritError | undefined;
  /** Counts `call` for its caller; returns the error when the caller has too many calls in flight. */
  callerRefusal(call: ServerCall, caller: Caller): WritError | undefined;
  /** Called when `call` has ended. */
  ended(call: ServerCall, caller: Caller): void;
}

type MessageInit = MessageInitShape<DescMessage>;

/**
 * Shared by all calls: thousands can be cancelled at once, and capturing a stack trace for each of them is expensive
 * (BD-2).
 */
const CLIENT_CANCELLED = new CancellationError('the client cancelled the call');

/**
 * One incoming call: span, gate, validation and handler, independent of the transport. A transport
 * opens it, calls `admit` before it reads the content, then `handleUnary` or `handleStream`, and `end`.
 */
export class ServerCall {
  readonly served: ServedMethod;
  readonly #host: CallHost;
  readonly #incoming: IncomingCall;
  readonly #span: CallSpan;
  readonly #interruption = new Interruption((error) => this.#logLateError(error));
  readonly #startedAt = performance.now();
  readonly #deadline: CallDeadline | undefined;
  #caller: Caller = {};
  #hasEnded = false;

  constructor(host: CallHost, served: ServedMethod, incoming: IncomingCall) {
    this.#host = host;
    this.served = served;
    this.#incoming = incoming;
    this.#span = new CallSpan(host.telemetry, served, incoming);
    const serverMs = served.implementation.kind === 'unary' ? host.maxUnaryMs : Infinity;
    const limitMs = Math.min(incoming.timeoutMs ?? Infinity, serverMs);
    if (limitMs < Infinity) this.#deadline = new CallDeadline(limitMs, () => this.cancel());
  }

  /** Aborts when the call must stop; the reason is a named error. */
  get signal(): AbortSignal {
    return this.#interruption.signal;
  }

  /** Authenticates and authorizes the call. Throws the error of the gate, TOO_MANY_CALLS or DRAINING. */
  async admit(): Promise<void> {
    const refusal = this.#host.refusal(this);
    if (refusal !== undefined) throw refusal;
    if (this.served.open) return;
    const { method } = this.served.implementation;
    const { peerUris } = this.#incoming;
    const header = (name: string): string | undefined => this.#incoming.header(name);
    const caller = await this.#unlessAborted(() => this.#host.gate({ method, peerUris, header }));
    // If the call ended during authentication, its resources are already released.
    if (this.#hasEnded) return;
    this.#caller = caller;
    this.#span.setCaller(caller);
    const tooMany = this.#host.callerRefusal(this, caller);
    if (tooMany !== undefined) throw tooMany;
    if (caller.isAnonymous !== true) this.#incoming.onAuthenticated?.();
  }

  /** Runs the handler of a unary call. */
  async handleUnary(request: Message): Promise<Message> {
    const { implementation } = this.served;
    if (implementation.kind !== 'unary') throw this.#wrongKind();
    this.#validate(request);
    const handle = () => implementation.handle(request, this.#context());
    return this.#message(await this.#unlessAborted(handle));
  }

  /** Runs the handler of a streaming call. */
  async *handleStream(request: Message | AsyncIterable<Message>): AsyncGenerator<Message, void> {
    const iterator = this.#run(() => this.#messages(request)[Symbol.asyncIterator]());
    let isRunning = true;
    const advance = async (): Promise<IteratorResult<MessageInit>> => {
      try {
        const next = await iterator.next();
        isRunning = next.done !== true;
        return next;
      } catch (error) {
        isRunning = false;
        throw error;
      }
    };
    try {
      for (;;) {
        const next = await this.#unlessAborted(advance);
        if (next.done === true) return;
        yield this.#message(next.value);
      }
    } finally {
      if (isRunning) this.#abandon(iterator);
    }
  }

  #messages(request: Message | AsyncIterable<Message>): AsyncIterable<MessageInit> {
    const { implementation } = this.served;
    const isMany = Symbol.asyncIterator in request;
    if (implementation.kind === 'bidi_streaming' && isMany) {
      return implementation.handle(request, this.#context());
    }
    if (implementation.kind !== 'server_streaming' || isMany) throw this.#wrongKind();
    this.#validate(request);
    return implementation.handle(request, this.#context());
  }

  /** Runs the handler's `finally` blocks without waiting for them: a blocked handler may never return. */
  #abandon(iterator: AsyncIterator<unknown>): void {
    this.#run(async () => iterator.return?.()).catch((error: unknown) => this.#logLateError(error));
  }

  #validate(request: Message): void {
    if (!this.served.open) assertValid(this.served.implementation.method.input, request);
  }

  #message(init: MessageInit): Message {
    return create(this.served.implementation.method.output, init);
  }

  /**
   * Returns the result of `work`, or rejects when the call is aborted. The async function converts an error that a
   * handler throws before it returns its promise into a rejection.
   */
  #unlessAborted<T>(work: () => Promise<T>): Promise<T> {
    return this.#interruption.unlessAborted(() => this.#run(async () => work()));
  }

  #run<T>(work: () => T): T {
    return context.with(this.#span.context, work);
  }

  #logLateError(error: unknown): void {
    const problem = error instanceof Error ? error.name : typeof error;
    this.#host.telemetry.log.debug(
      { rpc: this.served.name, problem },
      'handler failed after its call ended',
    );
  }

  /** Aborts the call with `reason`; the first reason wins. */
  abort(reason: WritError): void {
    if (!this.#hasEnded) this.#interruption.abort(reason);
  }

  /** Aborts the call because the client cancelled it or its deadline has passed. */
  cancel(): void {
    if (this.#hasEnded) return;
    this.abort(
      this.#deadline?.isExpired === true
        ? this.#deadline.error(this.served.name)
        : CLIENT_CANCELLED,
    );
  }

  /**
   * Cancels the call because its client has disconnected. The cancellation is queued, because a connection can close
   * with a thousand calls in flight (BD-2).
   */
  disconnect(): void {
    // grpc-js emits `cancelled` after every call.
    if (!this.#hasEnded) this.#host.disconnections.add(() => this.cancel());
  }

  /**
   * Ends the call: span, metric and log line, once. Returns the named error to send for `error`, or
   * undefined when the call succeeded.
   */
  end(error?: unknown): WritError | undefined {
    const failure =
      error === undefined
        ? undefined
        : wrapUnknown(this.signal.aborted ? this.signal.reason : error);
    if (this.#hasEnded) return failure;
    this.#hasEnded = true;
    this.#deadline?.clear();
    const durationMs = performance.now() - this.#startedAt;
    const report = { served: this.served, caller: this.#caller, failure, durationMs };
    this.#run(() => logCall(this.#host.telemetry.log, report));
    if (!this.served.open) {
      const { metrics } = this.#host.telemetry;
      recordCall(metrics, 'rpcServed', this.served.implementation.method, report);
    }
    this.#span.end(failure);
    this.#host.ended(this, this.#caller);
    return failure;
  }

  #wrongKind(): InternalError {
    return new InternalError(
      'INTERNAL',
      `${this.served.name} was called with the wrong method kind.`,
    );
  }

  #context(): CallContext {
    return callContext({
      method: this.served.implementation.method,
      signal: this.signal,
      remainingMs: () => this.#deadline?.remainingMs ?? Infinity,
      header: (name) => this.#incoming.header(name),
      caller: this.#caller,
      log: this.#host.telemetry.log,
      traceparent: () => this.#span.traceparent,
    });
  }
}

interface ContextParts extends Omit<CallContext, 'log' | 'traceparent' | 'remainingMs'> {
  /** The logger of the service. */
  readonly log: Logger;
  readonly traceparent: () => string;
  readonly remainingMs: () => number;
  readonly caller: Caller;
}

/** Creates the context of a handler; the logger and traceparent are created on first use. */
function callContext(parts: ContextParts): CallContext {
  const { method, signal, header, caller } = parts;
  let log: Logger | undefined;
  return {
    method,
    signal,
    header,
    caller,
    get log() {
      log ??= parts.log.child({ rpc: method.name, ...callerFields(caller) });
      return log;
    },
    get remainingMs() {
      return parts.remainingMs();
    },
    get traceparent() {
      return parts.traceparent();
    },
  };
}
