export { CostTracker, type RunCost } from './cost-tracker.ts';
export { type FollowBusOptions, followBus } from './follow-bus.ts';
export { followEvents } from './follow-events.ts';
export {
  HOOK_EVENTS,
  type HookCheckpoint,
  type HookContext,
  type HookEventName,
  type HookUsage,
  toHookContext,
} from './hook-context.ts';
export {
  type HookCallback,
  HookManager,
  type HookManagerOptions,
  type HookProblem,
  type Hooks,
} from './hook-manager.ts';
export { RunLogger } from './run-logger.ts';
