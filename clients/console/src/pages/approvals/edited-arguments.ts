import type { EditableArgument } from '@writ/contracts/writ/approval/v1/approval_pb';
import { hasExactNumbers } from '@writ/kernel/portable';

/** A JSON value that a form edits. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | object;

/** An argument of the action in the form. */
export interface FormArgument {
  readonly name: string;
  readonly value: JsonValue;
  /** How to edit it; undefined when it is locked. */
  readonly editable: EditableArgument | undefined;
}

/** What a field contains: its text, or whether its checkbox is checked. */
export type Input = string | boolean;

/** The inputs of the fields that were edited, by argument. */
export type Inputs = Readonly<Record<string, Input>>;

/** The value of an input, or why the input is invalid. */
export type Entry = { readonly value: JsonValue } | { readonly problem: string };

const INEXACT = 'A number has too many digits to be sent exactly.';

/**
 * Returns the arguments of an action, each with the edit that the policy permits. An editable argument that the action
 * does not set is included as null.
 */
export function formArguments(
  argumentsJson: string,
  editable: readonly EditableArgument[],
): readonly FormArgument[] {
  const values = parsed(argumentsJson);
  const byName = new Map(editable.map((each) => [each.argument, each]));
  const given = new Map(Object.entries(values));
  const names = [...new Set([...given.keys(), ...byName.keys()])];
  return names.map((name) => ({
    name,
    value: given.get(name) ?? null,
    editable: byName.get(name),
  }));
}

/** The field that edits an argument. */
export function fieldOf({
  value,
  editable,
}: FormArgument): 'number' | 'checkbox' | 'text' | 'json' {
  const isCapped = editable !== undefined && editable.maxJson !== '';
  if (typeof value === 'number' || isCapped) return 'number';
  if (typeof value === 'boolean') return 'checkbox';
  return typeof value === 'string' || value === null ? 'text' : 'json';
}

/** Returns what a field contains until it is edited. */
export function proposedInput(argument: FormArgument): Input {
  const { value } = argument;
  if (value === null) return '';
  const isShownAsIs = typeof value === 'string' || typeof value === 'boolean';
  return isShownAsIs && fieldOf(argument) !== 'number' ? value : JSON.stringify(value, null, 2);
}

/** Returns what a field contains. */
export function inputOf(inputs: Inputs, argument: FormArgument): Input {
  return enteredInput(inputs, argument) ?? proposedInput(argument);
}

function enteredInput(inputs: Inputs, { name }: FormArgument): Input | undefined {
  return Object.hasOwn(inputs, name) ? inputs[name] : undefined;
}

/** Reads the input of a field. An unchanged input always has the proposed value. */
export function readInput(argument: FormArgument, input: Input): Entry {
  if (input === proposedInput(argument)) return { value: argument.value };
  const field = fieldOf(argument);
  if (typeof input === 'boolean' || field === 'text') return { value: input };
  return field === 'number'
    ? readNumber(input.trim(), argument.editable?.decimals)
    : readJson(input);
}

/** Whether an edited field has a problem, so that the action cannot be approved. */
export function hasProblem(form: readonly FormArgument[], inputs: Inputs): boolean {
  return entriesOf(form, inputs).some(({ entry }) => 'problem' in entry);
}

/** The changed arguments as JSON; undefined when nothing was changed, or a field has a problem. */
export function changesJson(form: readonly FormArgument[], inputs: Inputs): string | undefined {
  const changes: [string, JsonValue][] = [];
  for (const { argument, entry } of entriesOf(form, inputs)) {
    if ('problem' in entry) return undefined;
    if (JSON.stringify(entry.value) !== JSON.stringify(argument.value))
      changes.push([argument.name, entry.value]);
  }
  return changes.length === 0 ? undefined : JSON.stringify(Object.fromEntries(changes));
}

/** The entries of the edited fields; a locked argument has none. */
function entriesOf(form: readonly FormArgument[], inputs: Inputs) {
  return form.flatMap((argument) => {
    const input = enteredInput(inputs, argument);
    return argument.editable === undefined || input === undefined
      ? []
      : [{ argument, entry: readInput(argument, input) }];
  });
}

/**
 * Reads a plain decimal number, such as `700.50`. A comma is rejected, because it separates decimals in some countries
 * and thousands in others.
 */
function readNumber(text: string, decimals: number | undefined): Entry {
  if (!/^-?\d+(\.\d+)?$/.test(text)) {
    return {
      problem:
        'This is not a number. Use a decimal point and no thousands separators, such as 1200.50.',
    };
  }
  const places = text.split('.')[1]?.length ?? 0;
  if (decimals !== undefined && places > decimals) {
    return { problem: `The number may have at most ${decimals} decimals, but it has ${places}.` };
  }
  return hasExactNumbers(text) ? { value: Number(text) } : { problem: INEXACT };
}

/** Reads JSON. A number with too many digits is rejected, because a different number would be sent. */
function readJson(text: string): Entry {
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch {
    return { problem: 'This is not JSON.' };
  }
  return hasExactNumbers(text) ? { value } : { problem: INEXACT };
}

function parsed(json: string): Readonly<Record<string, JsonValue>> {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, JsonValue>)
      : {};
  } catch {
    return {};
  }
}
