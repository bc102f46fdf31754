/** The part of the kernel that needs no Node.js modules, for code that also runs in browsers (PE-2). */
export { formatUsd, NANO_PER_USD } from './budgets/money.ts';
export { DataLossError, InvalidRequestError, UnauthenticatedError } from './errors/errors.ts';
export { canonicalJson } from './json/canonical-json.ts';
export { hasExactNumbers } from './json/exact-numbers.ts';
export type { JsonObject, JsonValue } from './json/json-value.ts';
export { isJsonObject } from './json/json-value.ts';
export { isId, TOOL_NAME_PATTERN } from './names/id-pattern.ts';
export { codeWaitFrom, codeWaitSentence } from './runs/code-wait.ts';
export { EXECUTED_FROM } from './runs/keys.ts';
export { Priority } from './runs/priority.ts';
export { backoffMs } from './time/backoff.ts';
