import { InvalidArgumentError } from 'commander';

/** An enum of the contracts, without its unset value. */
type Enum = Readonly<Record<string, string | number>>;

/** The names of an enum in lower case, without `unspecified`. */
function enumNames(values: Enum): string[] {
  return Object.keys(values)
    .filter((name) => typeof values[name] === 'number' && values[name] !== 0)
    .map((name) => name.toLowerCase());
}

/**
 * Reads a repeatable option whose values are names of an enum, also with `-` or blanks in place of `_`.
 * @throws InvalidArgumentError that lists the names
 */
export function addEnum<V extends number>(values: Enum) {
  return (text: string, earlier: readonly V[]): V[] => {
    const name = text.trim().toLowerCase().replaceAll(/[ -]/g, '_');
    if (enumNames(values).includes(name)) return [...earlier, values[name.toUpperCase()] as V];
    throw new InvalidArgumentError(`Values are ${enumNames(values).join(', ')}.`);
  };
}
