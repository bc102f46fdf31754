import type { EditableArgument } from '@writ/contracts/writ/approval/v1/approval_pb';

/** A JSON value that a form edits. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | object;

/** An argument of the action in the form. */
export interface FormArgument {
  readonly name: string;
  readonly value: JsonValue;
  /** How to edit it; undefined when it is locked. */
  readonly editable: EditableArgument | undefined;
}

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
  const names = [...new Set([...Object.keys(values), ...byName.keys()])];
  return names.map((name) => ({ name, value: values[name] ?? null, editable: byName.get(name) }));
}

/** Whether the form edits an argument as a number. */
export function isNumber({ value, editable }: FormArgument): boolean {
  return typeof value === 'number' || (editable !== undefined && editable.maxJson !== '');
}

/** Returns the value that a field shows: the entered value, even if it is `null`, otherwise the proposed value. */
export function shownValue(
  { name, value }: FormArgument,
  entered: Readonly<Record<string, JsonValue>>,
): JsonValue {
  return Object.hasOwn(entered, name) ? (entered[name] ?? null) : value;
}

/** Whether a number was cleared, so that the changes are not complete. */
export function hasClearedNumber(
  form: readonly FormArgument[],
  entered: Readonly<Record<string, JsonValue>>,
): boolean {
  return form.some(
    (argument) =>
      isNumber(argument) && argument.value !== null && shownValue(argument, entered) === null,
  );
}

/** The changed arguments as JSON; undefined when nothing was changed. */
export function changesJson(
  form: readonly FormArgument[],
  entered: Readonly<Record<string, JsonValue>>,
): string | undefined {
  const changed = form.filter(
    ({ name, value }) =>
      Object.hasOwn(entered, name) && JSON.stringify(entered[name]) !== JSON.stringify(value),
  );
  if (changed.length === 0) return undefined;
  return JSON.stringify(Object.fromEntries(changed.map(({ name }) => [name, entered[name]])));
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
