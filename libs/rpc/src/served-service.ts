import type { DescMethod, DescService, Message } from '@bufbuild/protobuf';
import { type CallContext, isEndless, type Route, type RouteMethod } from './handler.ts';

/** A method that answers a stream of requests with a stream; only reflection has one. */
export interface ConversationMethod {
  readonly kind: 'bidi_streaming';
  readonly method: DescMethod;
  readonly handle: (requests: AsyncIterable<Message>, call: CallContext) => AsyncIterable<Message>;
}

/** One method as both transports serve it. */
export interface ServedMethod {
  /** `writ.run.v1.RunService/StartRun`. */
  readonly name: string;
  readonly implementation: RouteMethod | ConversationMethod;
  /** Health and reflection are open: no gate, no validation, no span. */
  readonly open: boolean;
  /** Whether a drain ends its calls at once. */
  readonly endless: boolean;
}

/** A service as both transports serve it. */
export interface ServedService {
  readonly service: DescService;
  readonly methods: readonly ServedMethod[];
}

/** A service of the application: every call passes the gate. */
export function gated(route: Route): ServedService {
  return served(route.service, route.methods, false);
}

/** A service that everybody may call, which therefore must tell nothing but the contracts. */
export function open(
  service: DescService,
  methods: readonly (RouteMethod | ConversationMethod)[],
): ServedService {
  return served(service, methods, true);
}

function served(
  service: DescService,
  methods: readonly (RouteMethod | ConversationMethod)[],
  isOpen: boolean,
): ServedService {
  return {
    service,
    methods: methods.map((implementation) => ({
      name: `${service.typeName}/${implementation.method.name}`,
      implementation,
      open: isOpen,
      endless: isOpen || isEndless(implementation.handle),
    })),
  };
}
