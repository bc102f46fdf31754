import { InvalidRequestError } from '@writ/kernel';

/** An enum of the contracts. */
type Enum = Readonly<Record<string, string | number>>;

/**
 * Returns the enum values with these names. The names are case-insensitive; `-` and blanks are read as `_`.
 * @throws InvalidRequestError INVALID_OPTION for an unknown name; the message lists the valid names
 */
export function enumValues<V extends number>(
  values: Enum,
  names: readonly string[],
  option: string,
): V[] {
  const known = enumNames(values);
  return names.map((given) => {
    const name = given.trim().toLowerCase().replaceAll(/[ -]/g, '_');
    if (known.includes(name)) return values[name.toUpperCase()] as V;
    throw new InvalidRequestError(
      'INVALID_OPTION',
      `${option} must be one of ${known.join(', ')}, not ${JSON.stringify(given)}.`,
      { field: option },
    );
  });
}

/** The names of an enum in lower case, without `unspecified`. */
function enumNames(values: Enum): string[] {
  return Object.keys(values)
    .filter((name) => typeof values[name] === 'number' && values[name] !== 0)
    .map((name) => name.toLowerCase());
}
