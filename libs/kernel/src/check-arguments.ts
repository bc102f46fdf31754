import type { ArgumentContract, ArgumentSpec } from './argument-contract.ts';
import type { JsonObject, JsonValue } from './json-value.ts';
import { shownName } from './shown-name.ts';
import { trimWhiteSpace } from './white-space.ts';

/** When arguments are checked: as a worker proposed them, or as they are about to be executed. */
export type ArgumentPhase = 'proposed' | 'executed';

/** What can be wrong with one argument (TG-3). */
export type ArgumentProblemCode = 'extra' | 'missing' | 'bad_type' | 'unknown_spec';

/** One thing wrong with one argument. */
export interface ArgumentProblem {
  readonly code: ArgumentProblemCode;
  /** The argument's name; `*` when only the arguments together break a rule of the schema. */
  readonly argument: string;
  /** One sentence that names the argument and never its value. */
  readonly message: string;
}

/** The arguments with their strings trimmed, and everything that is wrong with them. */
export interface CheckedArguments {
  /** Usable only when `problems` is empty. */
  readonly args: JsonObject;
  /** Extras first, then in the order of the contract (SV-2). */
  readonly problems: readonly ArgumentProblem[];
}

/**
 * Checks a call's arguments against its tool's contract (TG-3). Unknown, missing and wrong-typed
 * arguments are named one by one; all strings are trimmed, and a required one must not be empty.
 * A `fillable` argument may be missing or empty when proposed, not when executed.
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
    const code = judge(spec, value);
    if (code !== undefined) problems.push(problem(code, spec.name));
  }
  // Rules over all arguments can only be judged once all are there and each is right by itself.
  if (problems.length === 0 && !toBeFilled && !contract.acceptsAll(trimmed)) {
    problems.push(problem('bad_type', '*'));
  }
  return { args: trimmed, problems };
}

function judge(spec: ArgumentSpec, value: JsonValue | undefined): ArgumentProblemCode | undefined {
  if (value === undefined) return spec.required ? 'missing' : undefined;
  if (spec.accepts === undefined) return 'unknown_spec';
  if (spec.required && value === '') return 'bad_type';
  return spec.accepts(value) ? undefined : 'bad_type';
}

function problem(code: ArgumentProblemCode, argument: string): ArgumentProblem {
  const name = argument === '*' ? 'The arguments together' : `Argument ${shownName(argument)}`;
  const verdicts: Readonly<Record<ArgumentProblemCode, string>> = {
    extra: 'is not one that the tool takes',
    missing: 'is required and missing',
    bad_type: argument === '*' ? 'break a rule of the schema' : 'does not fit its schema',
    unknown_spec: 'has a schema that cannot be read',
  };
  return { code, argument, message: `${name} ${verdicts[code]}.` };
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
