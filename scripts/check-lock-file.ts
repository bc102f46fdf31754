/** Fails if `npm install` has changed package-lock.json, other than by optional packages for certain platforms. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';

interface Entry {
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
}

type Entries = Readonly<Record<string, Entry>>;

/** npm leaves these out where the registry does not serve them, and adds them where it does. */
function dependsOnRegistry(entry: Entry): boolean {
  return entry.optional === true && (entry.os !== undefined || entry.cpu !== undefined);
}

function entriesOf(lockFile: string): Entries {
  return (JSON.parse(lockFile) as { readonly packages: Entries }).packages;
}

const committed = entriesOf(
  execFileSync('git', ['show', 'HEAD:package-lock.json'], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  }),
);
const installed = entriesOf(readFileSync('package-lock.json', 'utf8'));
const changed = [...new Set([...Object.keys(committed), ...Object.keys(installed)])].filter(
  (name) => {
    const [before, after] = [committed[name], installed[name]];
    const only = before === undefined ? after : after === undefined ? before : undefined;
    return only === undefined ? !isDeepStrictEqual(before, after) : !dependsOnRegistry(only);
  },
);
if (changed.length > 0) {
  const names = changed.map((name) => name || 'the root package').join(', ');
  console.error(`package-lock.json is not current: ${names}. Run npm install and commit it.`);
  process.exitCode = 1;
}
