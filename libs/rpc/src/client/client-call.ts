import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type Message,
  type MessageInitShape,
  toBinary,
} from '@bufbuild/protobuf';
import type { Metadata } from '@grpc/grpc-js';
import {
  CancellationError,
  type Clock,
  DeadlineError,
  InternalError,
  InvalidRequestError,
  isWritError,
  UnavailableError,
  type WritError,
} from '@writ/kernel';
import {
  type Context,
  recordError,
  type Span,
  SpanKind,
  type Telemetry,
  trace,
  traceparentOf,
} from '@writ/telemetry';
import { fromGrpcError } from '../errors/grpc-errors.ts';
import { statusCode } from '../errors/status-code.ts';
import { UnsentCallError } from '../errors/unsent-call.ts';
import { MAX_TIMER_MS } from '../limits.ts';
import { recordCall } from '../telemetry/call-metrics.ts';
import { isInternal } from '../telemetry/call-span.ts';
import {
  ATTR_RPC_GRPC_STATUS_CODE,
  ATTR_RPC_METHOD,
  ATTR_RPC_SERVICE,
  ATTR_RPC_SYSTEM,
  ATTR_SERVER_ADDRESS,
} from '../telemetry/rpc-attributes.ts';
import { callMetadata } from './call-metadata.ts';
import type { CallOptions } from './call-options.ts';
import type { Channel } from './channel.ts';

/** The called service and the credentials for it. */
export interface Peer {
  readonly channel: Channel;
  readonly telemetry: Telemetry;
  readonly serviceToken: (() => Promise<string>) | undefined;
  readonly clock: Clock;
}

/** One outgoing call: its span, deadline, metadata, encoding and error mapping. */
export class ClientCall {
  readonly context: Context;
  /** Deadline as monotonic time, ms, so that wall clock changes do not affect it (BD-3); Infinity without a timeout. */
  readonly deadlineAt: number;
  readonly #peer: Peer;
  readonly #method: DescMethod;
  readonly #name: string;
  readonly #options: CallOptions;
  /**
   * Undefined when traces are not exported. Also undefined, unless `internalSpans` is set, for lookups and for calls to
   * a server of this process.
   */
  readonly #span: Span | undefined;
  readonly #startedAt = performance.now();
  /** Whether an attempt may have reached the server. */
  #mayBeSent = false;
  #isOver = false;
  #called: { readonly address?: string } = {};

  constructor(peer: Peer, method: DescMethod, options: CallOptions, parent: Context) {
    this.#peer = peer;
    this.#method = method;
    this.#name = `${method.parent.typeName}/${method.name}`;
    this.#options = options;
    const { timeoutMs } = options;
    this.deadlineAt =
      timeoutMs === undefined ? Infinity : performance.now() + Math.min(timeoutMs, MAX_TIMER_MS);
    const { tracer, traces, internalSpans } = peer.telemetry;
    // The server span of a call within one process carries the same information.
    if (traces && !internalSpans && (isInternal(method) || peer.channel.isLocal(this.path))) {
      this.context = parent;
      return;
    }
    if (!traces) {
      // A non-recording span gives the call a trace id.
      this.context = trace.setSpan(parent, tracer.startSpan(this.#name, undefined, parent));
      return;
    }
    const attributes = {
      [ATTR_RPC_SYSTEM]: 'grpc',
      [ATTR_RPC_SERVICE]: method.parent.typeName,
      [ATTR_RPC_METHOD]: method.name,
    };
    this.#span = tracer.startSpan(this.#name, { kind: SpanKind.CLIENT, attributes }, parent);
    this.context = trace.setSpan(parent, this.#span);
  }

  get path(): string {
    return `/${this.#name}`;
  }

  /** @throws InvalidRequestError INVALID_REQUEST_MESSAGE when a value does not fit its field */
  encode(init: MessageInitShape<DescMessage>): Buffer {
    const { input } = this.#method;
    try {
      return Buffer.from(toBinary(input, create(input, init)));
    } catch (cause) {
      const what = cause instanceof Error ? cause.message : 'unknown problem';
      throw new InvalidRequestError(
        'INVALID_REQUEST_MESSAGE',
        `The request of ${this.#name} cannot be encoded: ${what}`,
        { method: this.#name },
        { cause },
      );
    }
  }

  /** @throws InternalError MALFORMED_RESPONSE when the response cannot be decoded */
  decode(bytes: Buffer): Message {
    try {
      return fromBinary(this.#method.output, bytes);
    } catch (cause) {
      throw new InternalError(
        'MALFORMED_RESPONSE',
        `The response of ${this.#name} is not a valid ${this.#method.output.typeName}.`,
        { method: this.#name },
        { cause },
      );
    }
  }

  /**
   * Returns the metadata, with fresh credentials, and the options of one attempt.
   * @throws DeadlineError DEADLINE_EXCEEDED when no time is left; the reason of the signal when the signal is aborted;
   *   InvalidRequestError INVALID_HEADER; the error of `serviceToken` or of the `address` function
   */
  async start(): Promise<{ metadata: Metadata; deadline?: Date; signal: AbortSignal | undefined }> {
    const { serviceToken } = this.#peer;
    const metadata = callMetadata({
      ...this.#options,
      serviceToken: serviceToken === undefined ? undefined : await serviceToken(),
      traceparent: traceparentOf(this.context),
      timeMs: this.#peer.clock.now().getTime(),
    });
    const { signal } = this.#options;
    signal?.throwIfAborted();
    const leftMs = this.deadlineAt - performance.now();
    if (leftMs <= 0) {
      throw new DeadlineError(
        'DEADLINE_EXCEEDED',
        `The deadline of ${this.#name} expired before the attempt started.`,
        { method: this.#name },
      );
    }
    const address = this.#peer.channel.address();
    this.#called = { address };
    this.#span?.setAttribute(ATTR_SERVER_ADDRESS, address);
    return {
      metadata,
      signal,
      ...(leftMs === Infinity ? {} : { deadline: new Date(Date.now() + leftMs) }),
    };
  }

  /** Records a retry on the span. */
  retried(error: WritError): void {
    this.#span?.addEvent('retry', { 'error.type': error.reason });
  }

  /**
   * The named error for `error`, which an attempt threw. It is an {@link UnsentCallError} only if no attempt was sent,
   * as shown by the errors of all attempts.
   */
  failure(error: unknown): WritError {
    const { signal } = this.#options;
    if (signal?.aborted === true && isOwnCancel(error, signal)) {
      // The abort reason may be an UnsentCallError of another call, so it does not show whether this call was sent.
      this.#mayBeSent = true;
      return this.#sentOrNot(cancellation(signal.reason));
    }
    if (isWritError(error)) return this.#sentOrNot(error);
    return this.#sentOrNot(fromGrpcError(error, { method: this.#name, ...this.#called }));
  }

  #sentOrNot(failure: WritError): WritError {
    if (!(failure instanceof UnsentCallError)) {
      this.#mayBeSent = true;
      return failure;
    }
    if (!this.#mayBeSent) return failure;
    return new UnavailableError('UNAVAILABLE', failure.message, failure.metadata);
  }

  /** Ends the span and records the metric; later calls have no effect. */
  end(failure?: WritError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const durationMs = performance.now() - this.#startedAt;
    recordCall(this.#peer.telemetry.metrics, 'rpcCalled', this.#method, { failure, durationMs });
    const span = this.#span;
    if (span === undefined) return;
    const code = failure === undefined ? 0 : statusCode(failure.kind);
    span.setAttribute(ATTR_RPC_GRPC_STATUS_CODE, code);
    if (failure !== undefined) recordError(span, failure);
    span.end();
  }
}

/** Whether `error` results from the abort: its reason, an AbortError, or CANCELLED from grpc-js. */
function isOwnCancel(error: unknown, signal: AbortSignal): boolean {
  if (error === signal.reason) return true;
  if (!(error instanceof Error)) return false;
  return error.name === 'AbortError' || ('code' in error && error.code === 1);
}

function cancellation(reason: unknown): WritError {
  if (isWritError(reason)) return reason;
  return new CancellationError(reason instanceof Error ? reason.message : String(reason));
}
