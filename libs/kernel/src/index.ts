export type { BudgetBreach } from './budget-exhausted-error.ts';
export { BudgetExhaustedError } from './budget-exhausted-error.ts';
export type { Clock } from './clock.ts';
export { ManualClock, systemClock } from './clock.ts';
export type { ErrorKind, ErrorMetadata } from './errors.ts';
export {
  AlreadyExistsError,
  CancellationError,
  ConflictError,
  DataLossError,
  DeadlineError,
  ERROR_KINDS,
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
export type { CentRounding } from './money.ts';
export { formatUsd, fromCents, NANO_PER_CENT, NANO_PER_USD, parseUsd, toCents } from './money.ts';
export type { PriorityName } from './priority.ts';
export { isPriority, Priority, priorityName } from './priority.ts';
