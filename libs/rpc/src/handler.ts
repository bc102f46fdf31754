import type {
  DescMessage,
  DescMethod,
  DescService,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import { NotImplementedError } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { Caller } from './caller.ts';

/** What a handler knows of the call besides its request (SUP-5). */
export interface CallContext {
  readonly method: DescMethod;
  /** Aborts with a CancellationError when the client goes away, a DeadlineError at the deadline. */
  readonly signal: AbortSignal;
  /** When the answer is no longer wanted; undefined when nobody set a limit. */
  readonly deadline: Date | undefined;
  /** The value of one request header (metadata key), whatever its case; undefined when absent. */
  header(name: string): string | undefined;
  readonly caller: Caller;
  /** Writes lines that carry the ids of the caller; never log content with it. */
  readonly log: Logger;
  /** W3C traceparent of the call's own span, for what outlives the call (SYS-1). */
  readonly traceparent: string;
}

/** Answers a unary call; the request is valid and the caller authorised. */
export type UnaryHandler<
  I extends DescMessage = DescMessage,
  O extends DescMessage = DescMessage,
> = (request: MessageShape<I>, call: CallContext) => Promise<MessageInitShape<O>>;

/** Answers a server-streaming call; returning ends the stream, throwing fails it. */
export type StreamHandler<
  I extends DescMessage = DescMessage,
  O extends DescMessage = DescMessage,
> = (request: MessageShape<I>, call: CallContext) => AsyncIterable<MessageInitShape<O>>;

/** The handler of method `M`: unary or server-streaming, as its contract says. */
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

/** One method with its handler, in the form that both transports serve. */
export type RouteMethod =
  | { readonly kind: 'unary'; readonly method: DescMethod; readonly handle: UnaryHandler }
  | {
      readonly kind: 'server_streaming';
      readonly method: DescMethod;
      readonly handle: StreamHandler;
    };

/** A service with its handlers, made by {@link route}. */
export interface Route {
  readonly service: DescService;
  readonly methods: readonly RouteMethod[];
}

/**
 * Binds a handler to every method of `service`; the type asks for all of them, so that a new RPC
 * cannot be forgotten. Serve it with `createRpcServer` or `createEdge`.
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
 * A handler for a method that is in the contract but not offered yet, unary or streaming: every
 * call fails with UNIMPLEMENTED and reason METHOD_NOT_IMPLEMENTED.
 *
 * @param sentence says to the caller what is missing
 */
export function unimplemented(sentence: string): () => never {
  return () => {
    throw new NotImplementedError('METHOD_NOT_IMPLEMENTED', sentence);
  };
}

const endlessHandlers = new WeakSet<object>();

/**
 * Marks a stream that has no end of its own, such as one that follows a run: when the server
 * drains, it ends at once with UNAVAILABLE, so that the client goes on elsewhere, instead of holding
 * the server up until the grace is over. Returns `handler`.
 */
export function endless<H extends (...args: never[]) => AsyncIterable<unknown>>(handler: H): H {
  endlessHandlers.add(handler);
  return handler;
}

/** Whether `handler` was marked by {@link endless}. */
export function isEndless(handler: object): boolean {
  return endlessHandlers.has(handler);
}
