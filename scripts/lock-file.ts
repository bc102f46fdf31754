import { isDeepStrictEqual } from 'node:util';

interface Entry {
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
}

type Entries = Readonly<Record<string, Entry>>;

/**
 * Returns the packages in which two lock files differ, as paths from the root; the path of the root package is empty.
 * Ignores optional platform-specific packages that are in only one of the files, because npm omits them when the
 * registry does not serve them.
 * @param before content of a package-lock.json
 * @param after content of the other
 */
export function changedPackages(before: string, after: string): readonly string[] {
  const [one, other] = [entriesOf(before), entriesOf(after)];
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].filter((name) => {
    const [was, is] = [one[name], other[name]];
    const only = was === undefined ? is : is === undefined ? was : undefined;
    return only === undefined ? !isDeepStrictEqual(was, is) : !dependsOnRegistry(only);
  });
}

function dependsOnRegistry(entry: Entry): boolean {
  return entry.optional === true && (entry.os !== undefined || entry.cpu !== undefined);
}

function entriesOf(lockFile: string): Entries {
  return (JSON.parse(lockFile) as { readonly packages: Entries }).packages;
}
