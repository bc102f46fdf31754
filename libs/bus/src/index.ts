export type { Bus, BusMessage, DurableOptions, LiveOptions, Subscription } from './bus.ts';
export {
  type BusFailure,
  createInProcessBus,
  type InProcessBusOptions,
} from './in-process-bus.ts';
export {
  assertPattern,
  assertSubject,
  HOOK_SUBJECTS,
  type HookAddress,
  hookSubject,
  matchSubject,
  type ProgressAddress,
  progressAgent,
  progressOfRun,
  progressSubject,
  TIMELINE_CONSUMER,
} from './subjects.ts';
