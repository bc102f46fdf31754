export { about, type KeyNotes } from './about.ts';
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
} from './agents/agent-extensions.ts';
export {
  defineHistoryProvider,
  defineMiddleware,
  defineStrategy,
  MiddlewareTermination,
} from './agents/agent-extensions.ts';
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
} from './agents/agent-function.ts';
export { defineAgent } from './agents/agent-function.ts';
export type {
  AgentKind,
  ManifestNames,
  PreemptionHandling,
  RefusalHandling,
} from './agents/agent-manifest.ts';
export { AGENT_KINDS } from './agents/agent-manifest.ts';
export type { ModelAnswered, ModelCall, ModelReply } from './agents/agent-model.ts';
export type { MiddlewareLevel, OptionsSchema } from './agents/agent-options.ts';
export {
  MIDDLEWARE_OPTIONS,
  REDACTION_KINDS,
  STRATEGY_OPTIONS,
  strategyBeforeSummary,
} from './agents/agent-options.ts';
export type {
  ChatTurn,
  LlmOutcome,
  LlmRequest,
  ModelAnswer,
  ToolOffer,
  ToolUse,
  ToolUseResult,
} from './agents/model-call.ts';
export type {
  ToolCall,
  ToolContext,
  ToolFunction,
  ToolModule,
  Tools,
} from './agents/tool-function.ts';
export { ToolFailure } from './agents/tool-function.ts';
export type { BudgetBreach } from './budgets/budget-exhausted-error.ts';
export { BudgetExhaustedError } from './budgets/budget-exhausted-error.ts';
export type { ExecutionBudget, Loose, SpawnBudget } from './budgets/budgets.ts';
export {
  createExecutionBudget,
  createSpawnBudget,
  DEFAULT_SPAWN_BUDGET,
  narrowExecutionBudget,
  narrowSpawnBudget,
  UNLIMITED_BUDGET,
} from './budgets/budgets.ts';
export { fitsDecimals } from './budgets/decimals.ts';
export type { CentRounding } from './budgets/money.ts';
export {
  formatUsd,
  fromCents,
  NANO_PER_CENT,
  NANO_PER_USD,
  parseUsd,
  toCents,
} from './budgets/money.ts';
export type { ErrorMetadata } from './errors/errors.ts';
export {
  AlreadyExistsError,
  CancellationError,
  ConflictError,
  DataLossError,
  DeadlineError,
  InternalError,
  InvalidRequestError,
  isClockError,
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
} from './errors/errors.ts';
export type { ErrorKind, Reason, ReasonInfo, ReasonOf } from './errors/reasons.ts';
export { ERROR_KINDS, REASONS } from './errors/reasons.ts';
export {
  createPrivateFolder,
  inheritFolderOwner,
  inheritOwner,
  keepOwner,
} from './files/owner.ts';
export { argsHash, argsHashText } from './json/args-hash.ts';
export { canonicalJson } from './json/canonical-json.ts';
export { canonicalDigest, definitionDigest, sha256Hex } from './json/digests.ts';
export { hasExactNumbers } from './json/exact-numbers.ts';
export type { Fields } from './json/fields.ts';
export { fieldsOf, listOf, textOf } from './json/fields.ts';
export type { JsonLimits } from './json/json.ts';
export { parseJsonStrict } from './json/json.ts';
export type { JsonArray, JsonObject, JsonValue } from './json/json-value.ts';
export { isJsonObject } from './json/json-value.ts';
export type { PlainMessage } from './json/plain-message.ts';
export type { ByteCacheLimits, CacheSize } from './memory/byte-cache.ts';
export { ByteCache, cacheSizes } from './memory/byte-cache.ts';
export { estimateBytes } from './memory/estimate-bytes.ts';
export { assertId, ID_PATTERN, isId, TOOL_NAME_PATTERN } from './names/id-pattern.ts';
export { derivedId, newId } from './names/ids.ts';
export { shownName } from './names/shown-name.ts';
export { foldWhiteSpace, trimWhiteSpace } from './names/white-space.ts';
export type { Defined } from './omit-undefined.ts';
export { omitUndefined } from './omit-undefined.ts';
export type {
  ContractLookup,
  FinalAction,
  ParsedAction,
  ToolAction,
  WorkerAction,
} from './runs/action.ts';
export {
  argumentStopReason,
  parseNativeCall,
  parseWorkerAction,
  validateWorkerAction,
} from './runs/action.ts';
export {
  type CodeMismatch,
  type CodeWait,
  codeWaitFrom,
  codeWaitSentence,
  codeWaitSignal,
} from './runs/code-wait.ts';
export type { AgentKey, CallKey, ExecutedFrom, RunKey, Verdict } from './runs/keys.ts';
export { agentKeyText, callKeyText, EXECUTED_FROM } from './runs/keys.ts';
export type { PriorityName } from './runs/priority.ts';
export { isPriority, Priority, priorityName } from './runs/priority.ts';
export { HistoryRetention, isHistoryRetention } from './runs/retention.ts';
export type { RunMetaFields } from './runs/run-meta.ts';
export { isTraceparent, newTraceparent, RunMeta } from './runs/run-meta.ts';
export { covers, type Scope, type ScopeSubject, scopeKey, scopesOver } from './runs/scope.ts';
export type { Phase, RunOutcome, RunState, RunStatus, TerminalState } from './runs/stop-reason.ts';
export {
  isStopReason,
  isTerminal,
  LIVE_STATES,
  outcomeOf,
  PHASES,
  TERMINAL_STATES,
} from './runs/stop-reason.ts';
export type { AgentRef, ChildOptions, RootOptions, SupervisionFields } from './runs/supervision.ts';
export { Supervision } from './runs/supervision.ts';
export { MAX_TOOL_TIMEOUT_MS, TOOL_CALL_TIMEOUT_MS } from './runs/tool-timeout.ts';
export type { ArgumentContract, ArgumentSpec } from './schemas/argument-contract.ts';
export { compileContract, compileSchema } from './schemas/argument-contract.ts';
export type {
  ArgumentPhase,
  ArgumentProblem,
  ArgumentProblemCode,
  CheckedArguments,
} from './schemas/check-arguments.ts';
export { checkArguments } from './schemas/check-arguments.ts';
export { compileLinearPattern } from './schemas/schema-limits.ts';
export type { BackoffOptions } from './time/backoff.ts';
export { backoffMs } from './time/backoff.ts';
export { CancellationToken } from './time/cancellation.ts';
export type { Clock } from './time/clock.ts';
export { ManualClock, systemClock } from './time/clock.ts';
export { IdleWait } from './time/idle-wait.ts';
export { PeerClocks } from './time/peer-clocks.ts';
export { DEFAULT_MAX_RETRIES, RetryPolicy } from './time/retry-policy.ts';
export type { WakeableLoopOptions } from './time/wakeable-loop.ts';
export { WakeableLoop } from './time/wakeable-loop.ts';
export { settlesWithin, withTimeout } from './time/with-timeout.ts';
