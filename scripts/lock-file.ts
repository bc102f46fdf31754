import { isDeepStrictEqual } from 'node:util';

interface Entry {
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
}

type Entries = Readonly<Record<string, Entry>>;

/**
 * The packages in which two lock files differ, as paths from the root; the root package itself is an empty path. Optional
 * packages for certain platforms that only one file has do not count: npm leaves them out where the registry does not serve
 * them, and adds them where it does.
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
