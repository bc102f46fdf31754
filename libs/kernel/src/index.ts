export { about, type KeyNotes } from './about.ts';
export type {
  ContractLookup,
  FinalAction,
  ParsedAction,
  ToolAction,
  WorkerAction,
} from './action.ts';
export {
  argumentStopReason,
  parseNativeCall,
  parseWorkerAction,
  validateWorkerAction,
} from './action.ts';
export type {
  AgentMiddleware,
  ChatMiddleware,
  ChatMiddlewareContext,
  ContextStrategy,
  FunctionMiddleware,
  FunctionMiddlewareContext,
  HistoryKey,
  HistoryProvider,
  HistoryProviderDefinition,
  Middleware,
  MiddlewareContext,
  MiddlewareDefinition,
  MiddlewareOperations,
  StrategyContext,
  StrategyDefinition,
} from './agent-extensions.ts';
export {
  defineHistoryProvider,
  defineMiddleware,
  defineStrategy,
  MiddlewareTermination,
} from './agent-extensions.ts';
export type {
  AgentCheckpoint,
  AgentDefinition,
  AgentModule,
  AgentOperations,
  AgentTask,
  FollowOptions,
  HandoffAnswer,
  ModelQuestion,
  ReplyAnswer,
  RestoredAgent,
  SpawnAnswer,
  SpawnOptions,
  ToolAnswer,
} from './agent-function.ts';
export { defineAgent } from './agent-function.ts';
export type { ModelAnswered, ModelCall, ModelReply } from './agent-model.ts';
export type { MiddlewareLevel, OptionsSchema } from './agent-options.ts';
export {
  MIDDLEWARE_OPTIONS,
  REDACTION_KINDS,
  STRATEGY_OPTIONS,
  strategyBeforeSummary,
} from './agent-options.ts';
export { argsHash, argsHashText } from './args-hash.ts';
export type { ArgumentContract, ArgumentSpec } from './argument-contract.ts';
export { compileContract, compileSchema } from './argument-contract.ts';
export type { BackoffOptions } from './backoff.ts';
export { backoffMs } from './backoff.ts';
export type { BudgetBreach } from './budget-exhausted-error.ts';
export { BudgetExhaustedError } from './budget-exhausted-error.ts';
export type { ExecutionBudget, Loose, SpawnBudget } from './budgets.ts';
export {
  createExecutionBudget,
  createSpawnBudget,
  DEFAULT_SPAWN_BUDGET,
  narrowExecutionBudget,
  narrowSpawnBudget,
  UNLIMITED_BUDGET,
} from './budgets.ts';
export { CancellationToken } from './cancellation.ts';
export { canonicalDigest, canonicalJson, definitionDigest, sha256Hex } from './canonical-json.ts';
export type {
  ArgumentPhase,
  ArgumentProblem,
  ArgumentProblemCode,
  CheckedArguments,
} from './check-arguments.ts';
export { checkArguments } from './check-arguments.ts';
export type { Clock } from './clock.ts';
export { ManualClock, systemClock } from './clock.ts';
export { fitsDecimals } from './decimals.ts';
export type { ErrorMetadata } from './errors.ts';
export {
  AlreadyExistsError,
  CancellationError,
  ConflictError,
  DataLossError,
  DeadlineError,
  InternalError,
  InvalidRequestError,
  isRetryable,
  isWritError,
  NotFoundError,
  NotImplementedError,
  OverloadedError,
  PermissionDeniedError,
  PreconditionError,
  UnauthenticatedError,
  UnavailableError,
  WritError,
  wrapUnknown,
} from './errors.ts';
export { assertId, derivedId, ID_PATTERN, isId, newId, TOOL_NAME_PATTERN } from './ids.ts';
export type { JsonLimits } from './json.ts';
export { parseJsonStrict } from './json.ts';
export type { JsonArray, JsonObject, JsonValue } from './json-value.ts';
export { isJsonObject } from './json-value.ts';
export type { AgentKey, CallKey, ExecutedFrom, RunKey } from './keys.ts';
export { EXECUTED_FROM } from './keys.ts';
export type {
  ChatTurn,
  LlmOutcome,
  LlmRequest,
  ModelAnswer,
  ToolOffer,
  ToolUse,
  ToolUseResult,
} from './model-call.ts';
export type { CentRounding } from './money.ts';
export { formatUsd, fromCents, NANO_PER_CENT, NANO_PER_USD, parseUsd, toCents } from './money.ts';
export type { Defined } from './omit-undefined.ts';
export { omitUndefined } from './omit-undefined.ts';
export type { PriorityName } from './priority.ts';
export { isPriority, Priority, priorityName } from './priority.ts';
export type { ErrorKind, Reason, ReasonInfo, ReasonOf } from './reasons.ts';
export { ERROR_KINDS, REASONS } from './reasons.ts';
export { HistoryRetention, isHistoryRetention } from './retention.ts';
export { DEFAULT_MAX_RETRIES, RetryPolicy } from './retry-policy.ts';
export type { RunMetaFields } from './run-meta.ts';
export { isTraceparent, newTraceparent, RunMeta } from './run-meta.ts';
export { compileLinearPattern } from './schema-limits.ts';
export { shownName } from './shown-name.ts';
export type { Phase, RunOutcome, RunState, RunStatus, TerminalState } from './stop-reason.ts';
export {
  isStopReason,
  isTerminal,
  LIVE_STATES,
  outcomeOf,
  PHASES,
  TERMINAL_STATES,
} from './stop-reason.ts';
export type { AgentRef, ChildOptions, RootOptions, SupervisionFields } from './supervision.ts';
export { Supervision } from './supervision.ts';
export type { ToolCall, ToolContext, ToolFunction, ToolModule, Tools } from './tool-function.ts';
export { ToolFailure } from './tool-function.ts';
export type { WakeableLoopOptions } from './wakeable-loop.ts';
export { WakeableLoop } from './wakeable-loop.ts';
export { foldWhiteSpace, trimWhiteSpace } from './white-space.ts';
export { settlesWithin, withTimeout } from './with-timeout.ts';
