import type {
  DescMessage,
  DescMethod,
  DescService,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import { NotImplementedError } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { Caller } from '../caller.ts';

/** The context of a call that a handler receives besides the request (SUP-5). */
export interface CallContext {
  readonly method: DescMethod;
  /**
   * Aborts with a CancellationError when the client cancels, a DeadlineError at the deadline, and an UnavailableError
   * DRAINING when the server shuts down.
   */
  readonly signal: AbortSignal;
  /**
   * Time left until the deadline of the call, ms; Infinity without a deadline. Measured with the monotonic clock, so
   * wall clock changes do not affect it (BD-3).
   */
  readonly remainingMs: number;
  /** The value of a request header (metadata key, case-insensitive); undefined when absent. */
  header(name: string): string | undefined;
  readonly caller: Caller;
  /** A logger with the ids of the caller; never log content with it. */
  readonly log: Logger;
  /** W3C traceparent of the call's span, for work that outlives the call (SYS-1). */
  readonly traceparent: string;
}

/** Handles a unary call; the request is valid and the caller authorized. */
export type UnaryHandler<
  I extends DescMessage = DescMessage,
  O extends DescMessage = DescMessage,
> = (request: MessageShape<I>, call: CallContext) => Promise<MessageInitShape<O>>;

/** Handles a server-streaming call; returning ends the stream, throwing fails it. */
export type StreamHandler<
  I extends DescMessage = DescMessage,
  O extends DescMessage = DescMessage,
> = (request: MessageShape<I>, call: CallContext) => AsyncIterable<MessageInitShape<O>>;

/** The handler of method `M`, unary or server-streaming as declared. */
export type Handler<M extends Pick<DescMethod, 'input' | 'output' | 'methodKind'>> =
  M['methodKind'] extends 'unary'
    ? UnaryHandler<M['input'], M['output']>
    : M['methodKind'] extends 'server_streaming'
      ? StreamHandler<M['input'], M['output']>
      : never;

/** A handler for every method of a service. */
export type Handlers<S extends DescService> = {
  readonly [K in keyof S['method']]: Handler<S['method'][K]>;
};

/** One method with its handler, independent of the transport. */
export type RouteMethod =
  | { readonly kind: 'unary'; readonly method: DescMethod; readonly handle: UnaryHandler }
  | {
      readonly kind: 'server_streaming';
      readonly method: DescMethod;
      readonly handle: StreamHandler;
    };

/** A service with its handlers, created by {@link route}. */
export interface Route {
  readonly service: DescService;
  readonly methods: readonly RouteMethod[];
}

/**
 * Binds a handler to every method of `service`; the type requires all of them. Serve the result with
 * `createRpcServer` or `createEdge`.
 */
export function route<S extends DescService>(service: S, handlers: Handlers<S>): Route {
  const byName = handlers as Readonly<Record<string, unknown>>;
  return {
    service,
    methods: service.methods.map((method) => bind(method, byName[method.localName])),
  };
}

function bind(method: DescMethod, handle: unknown): RouteMethod {
  if (typeof handle !== 'function') {
    throw new TypeError(`${method.parent.typeName}/${method.name} has no handler.`);
  }
  switch (method.methodKind) {
    case 'unary':
      return { kind: 'unary', method, handle: handle as UnaryHandler };
    case 'server_streaming':
      return { kind: 'server_streaming', method, handle: handle as StreamHandler };
    case 'client_streaming':
    case 'bidi_streaming':
      throw new TypeError(
        `${method.parent.typeName}/${method.name} streams requests, which handlers do not support.`,
      );
  }
}

/**
 * Binds handlers to some methods of `service`; every call of another method fails with UNIMPLEMENTED and reason
 * METHOD_NOT_IMPLEMENTED.
 */
export function partialRoute<S extends DescService>(
  service: S,
  handlers: Partial<Handlers<S>>,
): Route {
  const missing = service.methods.map(({ localName, parent, name }) => {
    const message = `This server does not implement ${parent.typeName}/${name}.`;
    const reject = (): never => {
      throw new NotImplementedError('METHOD_NOT_IMPLEMENTED', message);
    };
    return [localName, reject] as const;
  });
  return route(service, { ...Object.fromEntries(missing), ...handlers } as Handlers<S>);
}

const endlessHandlers = new WeakSet<object>();

/**
 * Marks a long-lived stream, such as one that watches a run. A drain ends the stream at once
 * with UNAVAILABLE, so that the client reconnects to another replica and the drain does not wait for the stream.
 * Returns `handler`.
 */
export function endless<H extends (...args: never[]) => AsyncIterable<unknown>>(handler: H): H {
  endlessHandlers.add(handler);
  return handler;
}

const reservedHandlers = new WeakSet<object>();

/**
 * Marks a unary method that must be served under any load, such as a halt: its calls count against `maxReservedCalls`
 * instead of the other call limits (BD-2). Returns `handler`.
 */
export function reserved<H extends (...args: never[]) => Promise<unknown>>(handler: H): H {
  reservedHandlers.add(handler);
  return handler;
}

/** Whether `handler` was marked by {@link reserved}. */
export function isReserved(handler: object): boolean {
  return reservedHandlers.has(handler);
}

/** Whether `handler` was marked by {@link endless}. */
export function isEndless(handler: object): boolean {
  return endlessHandlers.has(handler);
}
