import type { DescMethod, DescService, Message } from '@bufbuild/protobuf';
import {
  type CallContext,
  isEndless,
  isReserved,
  type Route,
  type RouteMethod,
} from './handler.ts';

/** A bidirectional streaming method; only reflection has one. */
export interface BidiMethod {
  readonly kind: 'bidi_streaming';
  readonly method: DescMethod;
  readonly handle: (requests: AsyncIterable<Message>, call: CallContext) => AsyncIterable<Message>;
}

/** One method, independent of the transport. */
export interface ServedMethod {
  /** `writ.run.v1.RunService/StartRun`. */
  readonly name: string;
  readonly implementation: RouteMethod | BidiMethod;
  /** Whether its calls skip the gate, validation and the span; true for health and reflection. */
  readonly open: boolean;
  /** Whether a drain aborts its calls at once. */
  readonly endless: boolean;
  /** Whether its calls count against `maxReservedCalls` instead of the other limits. */
  readonly reserved: boolean;
}

/** A service, independent of the transport. */
export interface ServedService {
  readonly service: DescService;
  readonly methods: readonly ServedMethod[];
}

const HEALTH_CHECK = 'grpc.health.v1.Health/Check';

/**
 * Returns the paths of reserved methods and of health checks. Calls of these methods begin before other calls (BD-2).
 */
export function urgentPaths(services: readonly ServedService[]): ReadonlySet<string> {
  return pathsOf(services, ({ name, reserved }) => reserved || name === HEALTH_CHECK);
}

/** Returns the paths of the methods for which `matches` returns true. */
export function pathsOf(
  services: readonly ServedService[],
  matches: (served: ServedMethod) => boolean,
): ReadonlySet<string> {
  const methods = services.flatMap((service) => service.methods).filter(matches);
  return new Set(methods.map(({ name }) => `/${name}`));
}

/** An application service: every call passes the gate. */
export function gated(route: Route): ServedService {
  return served(route.service, route.methods, false);
}

/**
 * Creates a service without authentication, such as health and reflection; it must disclose only the contracts and the
 * health of the server.
 */
export function open(
  service: DescService,
  methods: readonly (RouteMethod | BidiMethod)[],
): ServedService {
  return served(service, methods, true);
}

function served(
  service: DescService,
  methods: readonly (RouteMethod | BidiMethod)[],
  isOpen: boolean,
): ServedService {
  return {
    service,
    methods: methods.map((implementation) => ({
      name: `${service.typeName}/${implementation.method.name}`,
      implementation,
      open: isOpen,
      endless: isOpen || isEndless(implementation.handle),
      reserved: isReserved(implementation.handle),
    })),
  };
}
