import { InvalidRequestError } from '../errors/errors.ts';
import { parseJsonStrict } from '../json/json.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { shownName } from '../names/shown-name.ts';
import { trimWhiteSpace } from '../names/white-space.ts';
import type { ArgumentContract } from '../schemas/argument-contract.ts';
import { type ArgumentProblem, checkArguments } from '../schemas/check-arguments.ts';

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

/** A proposal of a worker (SV-2). */
export type WorkerAction = ToolAction | FinalAction;

/** Returns the argument contract of a tool; undefined when the agent does not have the tool. */
export type ContractLookup = (tool: string) => ArgumentContract | undefined;

/** A valid action, or the stop reason with the output of the model. */
export type ParsedAction =
  | { readonly ok: true; readonly action: WorkerAction }
  | {
      readonly ok: false;
      /** `invalid_action:` and the problem (SV-2). */
      readonly stopReason: string;
      /** The JSON of the model, or `{"kind":"invalid","raw":text}` when it is not JSON. */
      readonly raw: JsonValue;
    };

/** The value of `kind` in `raw` for model output that is not JSON; no action has this kind. */
const NOT_JSON_KIND = 'invalid';

/**
 * Parses the JSON output of a model as an action (SV-2). Trims strings; absent or null `args` and empty
 * text become `{}`. Accepts strict JSON only.
 */
export function parseWorkerAction(rawText: string, contractOf: ContractLookup): ParsedAction {
  const value = parseOrUndefined(rawText === '' ? '{}' : rawText);
  if (value === undefined) return invalid('non_json', { kind: NOT_JSON_KIND, raw: rawText });
  return validateWorkerAction(value, contractOf);
}

/**
 * Validates a native tool call like a tool action (SV-2). `argumentsText` is the JSON from the model API;
 * absent, empty and null become `{}`.
 */
export function parseNativeCall(
  name: string,
  argumentsText: string | null | undefined,
  contractOf: ContractLookup,
): ParsedAction {
  const args = argumentsText ? parseOrUndefined(argumentsText) : null;
  if (args === undefined)
    return invalid('non_json', { kind: NOT_JSON_KIND, raw: argumentsText ?? '' });
  return validateWorkerAction({ kind: 'tool', name, args }, contractOf);
}

/** Validates an action that is already parsed, in the order of SV-2. */
export function validateWorkerAction(value: JsonValue, contractOf: ContractLookup): ParsedAction {
  if (!isJsonObject(value)) return invalid('not_object', value);
  switch (own(value, 'kind')) {
    case 'final':
      return validateFinal(value);
    case 'tool':
      return validateTool(value, contractOf);
    case NOT_JSON_KIND:
      return invalid('non_json', value);
    default:
      return invalid('bad_kind', value);
  }
}

/** Returns the stop reason for a problem of the proposed arguments (SV-2). */
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
  if (hasOtherKeys(value, ['kind', 'answer'])) return invalid('extra_keys_final', value);
  const answer = trimmedText(own(value, 'answer'));
  if (answer === undefined) return invalid('bad_final_answer', value);
  return { ok: true, action: { kind: 'final', answer } };
}

function validateTool(value: JsonObject, contractOf: ContractLookup): ParsedAction {
  if (hasOtherKeys(value, ['kind', 'name', 'args'])) return invalid('extra_keys_tool', value);
  const name = trimmedText(own(value, 'name'));
  if (name === undefined) return invalid('bad_tool_name', value);
  const args = own(value, 'args') ?? {};
  if (!isJsonObject(args)) return invalid('bad_tool_args', value);
  const contract = contractOf(name);
  if (contract === undefined) return invalid(`unknown_tool:${shownName(name)}`, value);
  const checked = checkArguments(contract, args, { phase: 'proposed' });
  const [first] = checked.problems;
  if (first === undefined) return { ok: true, action: { kind: 'tool', name, args: checked.args } };
  return { ok: false, stopReason: argumentStopReason(name, first), raw: value };
}

function invalid(why: string, raw: JsonValue): ParsedAction {
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
