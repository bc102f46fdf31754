import { create, type DescMessage, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import { CancellationError, InternalError, type WritError, wrapUnknown } from '@writ/kernel';
import { context, type Telemetry } from '@writ/telemetry';
import { callContext } from './call-context.ts';
import { CallDeadline } from './call-deadline.ts';
import { recordCall } from './call-metrics.ts';
import { CallSpan } from './call-span.ts';
import type { Caller, Gate } from './caller.ts';
import type { CallContext } from './handler.ts';
import type { IncomingCall } from './incoming-call.ts';
import { Interruption } from './interruption.ts';
import { logCall } from './request-log.ts';
import type { ServedMethod } from './served-service.ts';
import { assertValid } from './validation.ts';

/** What all calls of a server share. */
export interface CallHost {
  readonly gate: Gate;
  readonly telemetry: Telemetry;
  readonly maxUnaryMs: number;
  /** Why `call` may not even begin, if so. */
  refusal(call: ServerCall): WritError | undefined;
  /** `call` is over. */
  ended(call: ServerCall): void;
}

type MessageInit = MessageInitShape<DescMessage>;

/**
 * One call on its way through span, gate, validation and handler, the same for every transport. A
 * transport opens it, calls `admit` before it reads content, then `answer` or `stream`, and `end`.
 */
export class ServerCall {
  readonly served: ServedMethod;
  readonly #host: CallHost;
  readonly #incoming: IncomingCall;
  readonly #span: CallSpan;
  readonly #interruption = new Interruption((error) => this.#tooLate(error));
  readonly #startedAt = performance.now();
  readonly #deadline: CallDeadline | undefined;
  #caller: Caller = {};
  #isOver = false;

  constructor(host: CallHost, served: ServedMethod, incoming: IncomingCall) {
    this.#host = host;
    this.served = served;
    this.#incoming = incoming;
    this.#span = new CallSpan(host.telemetry, served, incoming);
    const serverMs = served.implementation.kind === 'unary' ? host.maxUnaryMs : Infinity;
    const limitMs = Math.min(incoming.timeoutMs ?? Infinity, serverMs);
    if (limitMs < Infinity) this.#deadline = new CallDeadline(limitMs, () => this.cancel());
  }

  /** Aborts when the call must stop; its reason is a named error. */
  get signal(): AbortSignal {
    return this.#interruption.signal;
  }

  /** Lets the gate say who calls. Throws what the gate throws, before any content was looked at. */
  async admit(): Promise<void> {
    const refusal = this.#host.refusal(this);
    if (refusal !== undefined) throw refusal;
    if (this.served.open) return;
    const { method } = this.served.implementation;
    const { peerUris } = this.#incoming;
    const header = (name: string): string | undefined => this.#incoming.header(name);
    this.#caller = await this.#unlessAborted(() => this.#host.gate({ method, peerUris, header }));
    this.#span.calledBy(this.#caller);
  }

  /** The handler's answer to a unary call. */
  async answer(request: Message): Promise<Message> {
    const { implementation } = this.served;
    if (implementation.kind !== 'unary') throw this.#wrongKind();
    this.#validate(request);
    const handle = () => implementation.handle(request, this.#context());
    return this.#message(await this.#unlessAborted(handle));
  }

  /** The handler's answers to a streaming call. */
  async *stream(request: Message | AsyncIterable<Message>): AsyncGenerator<Message, void> {
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

  /** The handler's `finally` blocks still run, but nobody waits: it may hang where it stands. */
  #abandon(iterator: AsyncIterator<unknown>): void {
    this.#run(async () => iterator.return?.()).catch((error: unknown) => this.#tooLate(error));
  }

  #validate(request: Message): void {
    if (!this.served.open) assertValid(this.served.implementation.method.input, request);
  }

  #message(init: MessageInit): Message {
    return create(this.served.implementation.method.output, init);
  }

  /** Async, since a handler may throw before it returns its promise. */
  #unlessAborted<T>(work: () => Promise<T>): Promise<T> {
    return this.#interruption.unlessAborted(() => this.#run(async () => work()));
  }

  #run<T>(work: () => T): T {
    return context.with(this.#span.context, work);
  }

  #tooLate(error: unknown): void {
    const problem = error instanceof Error ? error.name : typeof error;
    this.#host.telemetry.log.debug({ rpc: this.served.name, problem }, 'Failed after its call.');
  }

  /** Stops the call with `reason`; the first reason stays. */
  abort(reason: WritError): void {
    if (!this.#isOver) this.#interruption.abort(reason);
  }

  /** The client went away, or the time is over. */
  cancel(): void {
    // grpc-js says so of every call that has ended, and an error is expensive to make.
    if (this.#isOver) return;
    this.abort(
      this.#deadline?.isOver === true
        ? this.#deadline.error(this.served.name)
        : new CancellationError('the client cancelled the call'),
    );
  }

  /**
   * Ends the call's span and writes its log line, the first time. Returns the named error to send
   * for `error`, or undefined when the call went well.
   */
  end(error?: unknown): WritError | undefined {
    const failure =
      error === undefined
        ? undefined
        : wrapUnknown(this.signal.aborted ? this.signal.reason : error);
    if (this.#isOver) return failure;
    this.#isOver = true;
    this.#deadline?.clear();
    const durationMs = performance.now() - this.#startedAt;
    const report = { served: this.served, caller: this.#caller, failure, durationMs };
    this.#run(() => logCall(this.#host.telemetry.log, report));
    if (!this.served.open) {
      const { metrics } = this.#host.telemetry;
      recordCall(metrics, 'rpcServed', this.served.implementation.method, report);
    }
    this.#span.end(failure);
    this.#host.ended(this);
    return failure;
  }

  #wrongKind(): InternalError {
    return new InternalError(
      'INTERNAL',
      `${this.served.name} was called as another kind of method.`,
    );
  }

  #context(): CallContext {
    return callContext({
      method: this.served.implementation.method,
      signal: this.signal,
      deadline: this.#deadline?.at,
      header: (name) => this.#incoming.header(name),
      caller: this.#caller,
      log: this.#host.telemetry.log,
      traceparent: () => this.#span.traceparent,
    });
  }
}
