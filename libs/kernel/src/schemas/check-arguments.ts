import { fitsDecimals } from '../budgets/decimals.ts';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { shownName } from '../names/shown-name.ts';
import { trimWhiteSpace } from '../names/white-space.ts';
import type { ArgumentContract, ArgumentSpec } from './argument-contract.ts';

/** When arguments are checked: as proposed by a worker, or before execution. */
export type ArgumentPhase = 'proposed' | 'executed';

/** The kinds of problems of an argument (TG-3). */
export type ArgumentProblemCode = 'extra' | 'missing' | 'bad_type' | 'unknown_spec';

/** One problem of one argument. */
export interface ArgumentProblem {
  readonly code: ArgumentProblemCode;
  /** The argument's name; `*` for a rule over all arguments. */
  readonly argument: string;
  /** One sentence that names the argument, never its value. */
  readonly message: string;
}

/** The arguments with trimmed strings, and their problems. */
export interface CheckedArguments {
  /** Valid only when `problems` is empty. */
  readonly args: JsonObject;
  /** Unknown arguments first, then in the order of the contract (SV-2). */
  readonly problems: readonly ArgumentProblem[];
}

/**
 * Validates the arguments of a call against the contract of its tool (TG-3). Reports unknown, missing and invalid
 * arguments one by one; `bad_type` is reported for every violation of the schema, not only for a wrong type. Trims all
 * strings; required strings must not be empty. A required `fillable` argument may be missing or empty in the proposal,
 * but not at execution.
 */
export function checkArguments(
  contract: ArgumentContract,
  args: JsonObject,
  { phase }: { readonly phase: ArgumentPhase },
): CheckedArguments {
  const trimmed = trimObject(args);
  const declared = new Set(contract.specs.map((spec) => spec.name));
  const problems = Object.keys(trimmed)
    .filter((name) => !declared.has(name) && !contract.admits(name))
    .map((name) => problem('extra', name));
  let toBeFilled = false;
  for (const spec of contract.specs) {
    const value = Object.hasOwn(trimmed, spec.name) ? trimmed[spec.name] : undefined;
    const mayBeFilled = phase === 'proposed' && spec.fillable;
    if (mayBeFilled && (value === undefined || value === '')) {
      toBeFilled = true;
      continue;
    }
    const code = problemCodeOf(spec, value);
    if (code !== undefined) problems.push(problem(code, spec.name, decimalsRule(spec, value)));
  }
  // Rules that apply to all arguments together are validated only if each argument is valid and none is still to be
  // filled.
  if (problems.length === 0 && !toBeFilled && !contract.acceptsAll(trimmed)) {
    problems.push(problem('bad_type', '*'));
  }
  return { args: trimmed, problems };
}

function problemCodeOf(
  spec: ArgumentSpec,
  value: JsonValue | undefined,
): ArgumentProblemCode | undefined {
  if (value === undefined) return spec.required ? 'missing' : undefined;
  if (spec.accepts === undefined) return 'unknown_spec';
  if (spec.required && value === '') return 'bad_type';
  return spec.accepts(value) ? undefined : 'bad_type';
}

/** Returns the rule that a number with too many decimal places violates; undefined for any other value. */
function decimalsRule(
  { decimals }: ArgumentSpec,
  value: JsonValue | undefined,
): string | undefined {
  if (decimals === undefined || typeof value !== 'number') return undefined;
  if (fitsDecimals(value, decimals)) return undefined;
  return decimals === 0
    ? 'must be a whole number'
    : `must have at most ${decimals} decimal ${decimals === 1 ? 'place' : 'places'}`;
}

function problem(code: ArgumentProblemCode, argument: string, rule?: string): ArgumentProblem {
  const name = argument === '*' ? 'The arguments together' : `Argument ${shownName(argument)}`;
  const verdicts: Readonly<Record<ArgumentProblemCode, string>> = {
    extra: 'is not defined by the tool',
    missing: 'is required and missing',
    bad_type: argument === '*' ? 'break a rule of the schema' : 'does not fit its schema',
    unknown_spec: 'has an invalid schema',
  };
  return { code, argument, message: `${name} ${rule ?? verdicts[code]}.` };
}

function trimObject(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, trimmed(value)]));
}

function trimmed(value: JsonValue): JsonValue {
  if (typeof value === 'string') return trimWhiteSpace(value);
  if (typeof value !== 'object' || value === null) return value;
  return isArray(value) ? value.map(trimmed) : trimObject(value);
}

function isArray(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
