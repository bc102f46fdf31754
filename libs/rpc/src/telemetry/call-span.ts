import type { DescMethod } from '@bufbuild/protobuf';
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
import { type Caller, METADATA } from '../caller.ts';
import type { IncomingCall } from '../calls/incoming-call.ts';
import type { ServedMethod } from '../calls/served-service.ts';
import { statusCode } from '../errors/status-code.ts';
import { callerAttributes } from './caller-ids.ts';
import {
  ATTR_RPC_GRPC_STATUS_CODE,
  ATTR_RPC_METHOD,
  ATTR_RPC_SERVICE,
  ATTR_RPC_SYSTEM,
} from './rpc-attributes.ts';

/** The statuses that the OpenTelemetry conventions count as server errors. */
const SERVER_FAULTS: ReadonlySet<ErrorKind> = new Set([
  'deadline_exceeded',
  'unimplemented',
  'internal',
  'unavailable',
  'data_loss',
]);

/** Methods that look up keys and tools and are not part of the work of a run. */
const LOOKUPS: ReadonlySet<string> = new Set([
  'writ.identity.v1.KeyService/GetKeys',
  'writ.tool.v1.ToolGatewayService/ListTools',
]);

/** Whether the calls of a method have spans only when `internalSpans` is set. */
export function isInternal({ parent, name }: DescMethod): boolean {
  return LOOKUPS.has(`${parent.typeName}/${name}`);
}

/** The server span of one call, a child of the client span (SYS-1). */
export class CallSpan {
  /** Absent for open services, for lookups without `internalSpans`, and when traces are not exported. */
  readonly #span: Span | undefined;
  /** Active while the call is handled. */
  readonly context: Context;

  constructor(
    { tracer, traces, internalSpans }: Telemetry,
    served: ServedMethod,
    incoming: IncomingCall,
  ) {
    const parent = contextFromTraceparent(incoming.header(METADATA.traceparent), ROOT_CONTEXT);
    const { method } = served.implementation;
    if (served.open || (traces && !internalSpans && isInternal(method))) {
      this.context = parent;
      return;
    }
    if (!traces) {
      // A non-recording span gives the call a trace id.
      this.context = trace.setSpan(parent, tracer.startSpan(served.name, undefined, parent));
      return;
    }
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

  /** Records the ids of the caller. */
  setCaller(caller: Caller): void {
    this.#span?.setAttributes(callerAttributes(caller));
  }

  /** Ends the span; `failure` is the error that the client receives. */
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
