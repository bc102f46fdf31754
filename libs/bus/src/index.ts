export type {
  Bus,
  BusFailure,
  BusMessage,
  DurableOptions,
  LiveOptions,
  Subscription,
} from './bus.ts';
export {
  HOOK_EMITTER_NAMES,
  HOOK_EMITTERS,
  HOOK_STREAMS,
  type HookEmitter,
  hookStream,
  OBSERVED_STREAM,
  OBSERVER,
  type StreamPlan,
} from './hook-streams.ts';
export {
  createInProcessBus,
  type InProcessBusOptions,
} from './in-process-bus.ts';
export {
  type NatsUser,
  natsAuthorization,
  OBSERVER_USER,
  SERVICE_USERS,
} from './nats/server-users.ts';
export {
  AUDIT_CHECKPOINT_SUBJECTS,
  assertPattern,
  assertSubject,
  HOOK_SUBJECTS,
  type HookAddress,
  hookSubject,
  matchSubject,
  OBSERVED_SUBJECTS,
  type ProgressAddress,
  progressAgent,
  progressOfRun,
  progressSubject,
  TIMELINE_CONSUMER,
} from './subjects.ts';
