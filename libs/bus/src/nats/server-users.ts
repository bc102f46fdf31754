import {
  HOOK_EMITTER_NAMES,
  HOOK_EMITTERS,
  type HookEmitter,
  hookStream,
  OBSERVED_STREAM,
  OBSERVER,
} from '../hook-streams.ts';
import { AUDIT_CHECKPOINT_SUBJECTS, TIMELINE_CONSUMER } from '../subjects.ts';

/** A user of the NATS server. */
export interface NatsUser {
  readonly user: string;
  /**
   * `observer` for programs that only read copies of events; the durable consumer of these programs has the name of the
   * user.
   */
  readonly service: HookEmitter | typeof OBSERVER;
  /** Environment variable of the server with the password. */
  readonly passwordVariable: string;
  /** Tenants that the user can access; default: all. */
  readonly tenants?: readonly string[];
}

/** The permitted subjects of a user; all others are denied. */
interface NatsPermissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/** One user for each service that emits events, with the name of the service. */
export const SERVICE_USERS: readonly NatsUser[] = HOOK_EMITTER_NAMES.map((service) => ({
  user: service,
  service,
  passwordVariable: `WRIT_NATS_${service.toUpperCase().replaceAll('-', '_')}_PASSWORD`,
}));

/** The user of programs that observe events (HK-3). */
export const OBSERVER_USER: NatsUser = {
  user: OBSERVER,
  service: OBSERVER,
  passwordVariable: 'WRIT_NATS_OBSERVER_PASSWORD',
};

/**
 * Returns the permissions of an observer, which reads the copies through its durable consumer. It cannot create
 * consumers, because a consumer can deliver to any subject, and it cannot reach the streams of the services.
 */
function observerPermissions(user: string): NatsPermissions {
  const { name } = OBSERVED_STREAM;
  return {
    publish: [
      `$JS.API.STREAM.INFO.${name}`,
      `$JS.API.STREAM.MSG.GET.${name}`,
      `$JS.API.CONSUMER.INFO.${name}.${user}`,
      `$JS.API.CONSUMER.MSG.NEXT.${name}.${user}`,
      `$JS.ACK.${name}.${user}.>`,
    ],
    subscribe: [`_INBOX.${user}.>`],
  };
}

/**
 * Returns the minimal permissions of a user. A service can publish its own events, receive the replies to its requests
 * and read the state of its stream; agent-worker can also publish progress messages. The supervisor can also publish
 * tool events, create the streams, and consume the events and progress messages of all services (HK-1, SYS-6).
 */
function natsPermissions({ user, service, tenants }: NatsUser): NatsPermissions {
  if (service === OBSERVER) return observerPermissions(user);
  const reachable = tenants ?? ['*'];
  const isSupervisor = service === 'supervisor';
  // The supervisor publishes the events of tool calls for a gateway without a bus.
  const emitters: readonly HookEmitter[] = isSupervisor ? [service, 'tool-gateway'] : [service];
  const events = emitters.flatMap((emitter) =>
    reachable.flatMap((tenant) =>
      HOOK_EMITTERS[emitter].map((event) => `writ.hooks.v1.${tenant}.*.*.${event}`),
    ),
  );
  const progress = reachable.map((tenant) => `writ.progress.v1.${tenant}.>`);
  const api = isSupervisor
    ? [...HOOK_EMITTER_NAMES.flatMap(ownerApi), ...observedApi()]
    : emitterApi(service);
  return {
    publish: [...events, ...(service === 'agent-worker' ? progress : []), ...api],
    subscribe: [
      `_INBOX.${user}.>`,
      ...(isSupervisor ? [...progress, AUDIT_CHECKPOINT_SUBJECTS] : []),
    ],
  };
}

/** The `authorization` section of a nats-server configuration, with passwords from the environment. */
export function natsAuthorization(users: readonly NatsUser[]): string {
  const entries = users.map((user) => {
    const { publish, subscribe } = natsPermissions(user);
    return [
      '    {',
      `      user: ${JSON.stringify(user.user)}`,
      `      password: $${user.passwordVariable}`,
      '      permissions {',
      `        publish { allow: [\n${listed(publish)}\n        ] }`,
      `        subscribe { allow: [\n${listed(subscribe)}\n        ] }`,
      '      }',
      '    }',
    ].join('\n');
  });
  return `authorization {\n  users: [\n${entries.join('\n')}\n  ]\n}\n`;
}

function listed(subjects: readonly string[]): string {
  return subjects.map((subject) => `          ${JSON.stringify(subject)}`).join('\n');
}

function emitterApi(service: HookEmitter): string[] {
  const { name } = hookStream(service);
  return [`$JS.API.STREAM.INFO.${name}`, `$JS.API.CONSUMER.INFO.${name}.${TIMELINE_CONSUMER}`];
}

function ownerApi(emitter: HookEmitter): string[] {
  const { name } = hookStream(emitter);
  return [
    ...emitterApi(emitter),
    `$JS.API.STREAM.CREATE.${name}`,
    `$JS.API.STREAM.UPDATE.${name}`,
    `$JS.API.STREAM.MSG.GET.${name}`,
    `$JS.API.CONSUMER.CREATE.${name}.${TIMELINE_CONSUMER}`,
    `$JS.API.CONSUMER.MSG.NEXT.${name}.${TIMELINE_CONSUMER}`,
    `$JS.ACK.${name}.${TIMELINE_CONSUMER}.>`,
  ];
}

/** Returns the API subjects with which the supervisor creates the stream of copies and the consumer of observers. */
function observedApi(): string[] {
  const { name } = OBSERVED_STREAM;
  return [
    `$JS.API.STREAM.INFO.${name}`,
    `$JS.API.STREAM.CREATE.${name}`,
    `$JS.API.CONSUMER.INFO.${name}.${OBSERVER}`,
    `$JS.API.CONSUMER.CREATE.${name}.${OBSERVER}`,
  ];
}
