import type { ArgumentContract } from './argument-contract.ts';
import { type ArgumentProblem, checkArguments } from './check-arguments.ts';
import { InvalidRequestError } from './errors.ts';
import { parseJsonStrict } from './json.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './json-value.ts';
import { shownName } from './shown-name.ts';
import { trimWhiteSpace } from './white-space.ts';

/** A proposed tool call. */
export interface ToolAction {
  readonly kind: 'tool';
  readonly name: string;
  readonly args: JsonObject;
}

/** A proposed final answer. */
export interface FinalAction {
  readonly kind: 'final';
  readonly answer: string;
}

/** What a worker may propose (SV-2). */
export type WorkerAction = ToolAction | FinalAction;

/** Finds the argument contract of a tool; undefined when the agent has no such tool. */
export type ContractLookup = (tool: string) => ArgumentContract | undefined;

/** A valid action, or the stop reason and what the model said. */
export type ParsedAction =
  | { readonly ok: true; readonly action: WorkerAction }
  | {
      readonly ok: false;
      /** `invalid_action:` and why (SV-2). */
      readonly stopReason: string;
      /** The JSON that the model sent, or `{"kind":"invalid","raw":text}` when it is none. */
      readonly raw: JsonValue;
    };

/** The kind under which text that is no JSON is shown; a model that sends it gets the same answer. */
const NOT_JSON_KIND = 'invalid';

/**
 * Reads the raw text of a JSON-speaking model as an action (SV-2). Strings come back trimmed and
 * absent or null `args` as `{}`; empty text counts as `{}`. JSON that is not strict is no JSON.
 */
export function parseWorkerAction(rawText: string, contractOf: ContractLookup): ParsedAction {
  const value = parseOrUndefined(rawText === '' ? '{}' : rawText);
  if (value === undefined) return refuse('non_json', { kind: NOT_JSON_KIND, raw: rawText });
  return validateWorkerAction(value, contractOf);
}

/**
 * Reviews a native tool call like a tool action (SV-2): `argumentsText` is the JSON that the model
 * API delivered; absent, empty and null are `{}`.
 */
export function parseNativeCall(
  name: string,
  argumentsText: string | null | undefined,
  contractOf: ContractLookup,
): ParsedAction {
  const args = argumentsText ? parseOrUndefined(argumentsText) : null;
  if (args === undefined)
    return refuse('non_json', { kind: NOT_JSON_KIND, raw: argumentsText ?? '' });
  return validateWorkerAction({ kind: 'tool', name, args }, contractOf);
}

/** Validates an action that is already JSON, in the fixed order of SV-2. */
export function validateWorkerAction(value: JsonValue, contractOf: ContractLookup): ParsedAction {
  if (!isJsonObject(value)) return refuse('not_object', value);
  switch (own(value, 'kind')) {
    case 'final':
      return validateFinal(value);
    case 'tool':
      return validateTool(value, contractOf);
    case NOT_JSON_KIND:
      return refuse('non_json', value);
    default:
      return refuse('bad_kind', value);
  }
}

/** The stop reason of the first thing wrong with a tool's proposed arguments (SV-2). */
export function argumentStopReason(tool: string, problem: ArgumentProblem): string {
  switch (problem.code) {
    case 'extra':
      return `invalid_action:extra_tool_args:${tool}`;
    case 'missing':
      return `invalid_action:missing_required_arg:${tool}:${problem.argument}`;
    case 'bad_type':
      return `invalid_action:bad_arg_type:${tool}:${problem.argument}`;
    case 'unknown_spec':
      return `invalid_action:unknown_arg_spec:${tool}:${problem.argument}`;
  }
}

function validateFinal(value: JsonObject): ParsedAction {
  if (hasOtherKeys(value, ['kind', 'answer'])) return refuse('extra_keys_final', value);
  const answer = trimmedText(own(value, 'answer'));
  if (answer === undefined) return refuse('bad_final_answer', value);
  return { ok: true, action: { kind: 'final', answer } };
}

function validateTool(value: JsonObject, contractOf: ContractLookup): ParsedAction {
  if (hasOtherKeys(value, ['kind', 'name', 'args'])) return refuse('extra_keys_tool', value);
  const name = trimmedText(own(value, 'name'));
  if (name === undefined) return refuse('bad_tool_name', value);
  const args = own(value, 'args') ?? {};
  if (!isJsonObject(args)) return refuse('bad_tool_args', value);
  const contract = contractOf(name);
  if (contract === undefined) return refuse(`unknown_tool:${shownName(name)}`, value);
  const checked = checkArguments(contract, args, { phase: 'proposed' });
  const [first] = checked.problems;
  if (first === undefined) return { ok: true, action: { kind: 'tool', name, args: checked.args } };
  return { ok: false, stopReason: argumentStopReason(name, first), raw: value };
}

function refuse(why: string, raw: JsonValue): ParsedAction {
  return { ok: false, stopReason: `invalid_action:${why}`, raw };
}

function parseOrUndefined(text: string): JsonValue | undefined {
  try {
    return parseJsonStrict(text, { field: 'action' });
  } catch (error) {
    if (error instanceof InvalidRequestError) return undefined;
    throw error;
  }
}

function hasOtherKeys(value: JsonObject, allowed: readonly string[]): boolean {
  return Object.keys(value).some((key) => !allowed.includes(key));
}

function own(value: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

function trimmedText(value: JsonValue | undefined): string | undefined {
  const text = typeof value === 'string' ? trimWhiteSpace(value) : '';
  return text === '' ? undefined : text;
}
