import { type ErrorKind, newTraceparent, type WritError } from '@writ/kernel';
import {
  type Context,
  contextFromTraceparent,
  ROOT_CONTEXT,
  recordError,
  type Span,
  SpanKind,
  type Telemetry,
  trace,
  traceparentOf,
} from '@writ/telemetry';
import { type Caller, METADATA } from './caller.ts';
import { callerAttributes } from './caller-ids.ts';
import type { IncomingCall } from './incoming-call.ts';
import {
  ATTR_RPC_GRPC_STATUS_CODE,
  ATTR_RPC_METHOD,
  ATTR_RPC_SERVICE,
  ATTR_RPC_SYSTEM,
} from './rpc-attributes.ts';
import type { ServedMethod } from './served-service.ts';
import { statusCode } from './status-code.ts';

/** By convention only these mean that the server failed; the rest are answers to the client. */
const SERVER_FAULTS: ReadonlySet<ErrorKind> = new Set([
  'deadline_exceeded',
  'unimplemented',
  'internal',
  'unavailable',
  'data_loss',
]);

/** The server's span of one call, child of the client's (SYS-1). Open services have none. */
export class CallSpan {
  readonly #span: Span | undefined;
  /** To be active while the call is worked on. */
  readonly context: Context;

  constructor({ tracer, traces }: Telemetry, served: ServedMethod, incoming: IncomingCall) {
    const parent = contextFromTraceparent(incoming.header(METADATA.traceparent), ROOT_CONTEXT);
    if (served.open) {
      this.context = parent;
      return;
    }
    if (!traces) {
      // Only so that the call has a trace id; nobody takes what would be said of it.
      this.context = trace.setSpan(parent, tracer.startSpan(served.name, undefined, parent));
      return;
    }
    const { method } = served.implementation;
    const attributes = {
      [ATTR_RPC_SYSTEM]: incoming.rpcSystem,
      [ATTR_RPC_SERVICE]: method.parent.typeName,
      [ATTR_RPC_METHOD]: method.name,
    };
    this.#span = tracer.startSpan(served.name, { kind: SpanKind.SERVER, attributes }, parent);
    this.context = trace.setSpan(parent, this.#span);
  }

  /** W3C traceparent of the span. */
  get traceparent(): string {
    return traceparentOf(this.context) ?? newTraceparent();
  }

  /** Notes who calls: ids only. */
  calledBy(caller: Caller): void {
    this.#span?.setAttributes(callerAttributes(caller));
  }

  /** Ends the span; `failure` is what the client gets. */
  end(failure: WritError | undefined): void {
    const span = this.#span;
    if (span === undefined) return;
    span.setAttribute(
      ATTR_RPC_GRPC_STATUS_CODE,
      failure === undefined ? 0 : statusCode(failure.kind),
    );
    if (failure !== undefined) {
      if (SERVER_FAULTS.has(failure.kind)) recordError(span, failure);
      else span.setAttribute('error.type', failure.reason);
    }
    span.end();
  }
}
