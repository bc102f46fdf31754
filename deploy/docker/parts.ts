import { cpSync, existsSync, globSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

/** The root of the repository. */
export const ROOT = resolve(import.meta.dirname, '../..');

/** What is started in the image; the rest comes along because these need it. */
export const PROGRAMS = [
  'services/supervisor',
  'services/spawn-budget',
  'services/execution-meter',
  'services/tool-gateway',
  'services/agent-worker',
  'platform',
  'clients/cli',
] as const;

/** Data and programs that are read at run time, and that no package depends on. */
const EXAMPLES = 'examples/*';

/** Not needed to run: types, maps, tests, prose. Licenses stay. */
const LEFT_OUT = /(\.d\.[cm]?ts|\.test\.[cm]?[jt]s|\.map|\/(?!licen[cs]e)[^/]*\.(md|markdown))$/i;

interface Package {
  readonly name?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

/** Folders of packages, relative to the root: the repository's own, and those from the registry. */
export interface Parts {
  readonly own: readonly string[];
  readonly fromRegistry: readonly string[];
}

/**
 * Everything that the programs need to run, found the way Node finds it. Versions are those that npm
 * installed by the lock file.
 * @throws Error naming a package that is not installed
 */
export function partsOfImage(): Parts {
  const own = new Map<string, string>();
  for (const file of globSync(['libs/*', 'services/*', 'platform', 'clients/*', EXAMPLES], {
    cwd: ROOT,
  })) {
    const { name } = packageOf(file) ?? {};
    if (name !== undefined) own.set(name, file);
  }
  const found = new Set<string>();
  const take = (folder: string): void => {
    if (found.has(folder)) return;
    found.add(folder);
    const { dependencies, optionalDependencies = {}, ...peers } = packageOf(folder) ?? {};
    const wanted = { ...dependencies, ...optionalDependencies, ...neededPeers(peers) };
    for (const name of Object.keys(wanted)) {
      const place = own.get(name) ?? installed(name, folder);
      if (place !== undefined) take(place);
      else if (!(name in optionalDependencies))
        throw new Error(`${name}, which ${folder} needs, is not installed: npm install`);
    }
  };
  for (const folder of [...PROGRAMS, ...globSync(EXAMPLES, { cwd: ROOT })]) take(folder);
  const folders = [...found].sort();
  return {
    own: folders.filter((folder) => !folder.includes('node_modules')),
    fromRegistry: folders.filter((folder) => folder.includes('node_modules')),
  };
}

/** Where a package lies that code in `folder` imports: in the nearest node_modules that has it. */
function installed(name: string, folder: string): string | undefined {
  for (let here = join(ROOT, folder); here.startsWith(ROOT); here = resolve(here, '..')) {
    const place = join(here, 'node_modules', name);
    if (existsSync(join(place, 'package.json'))) return relative(ROOT, place);
  }
  return undefined;
}

/** The peers of a package without those that it can do without. */
function neededPeers({ peerDependencies = {}, peerDependenciesMeta = {} }: Package): object {
  const needed = Object.entries(peerDependencies).filter(
    ([name]) => peerDependenciesMeta[name]?.optional !== true,
  );
  return Object.fromEntries(needed);
}

/** What the package.json of a folder says; undefined without one. */
export function packageOf(folder: string): Package | undefined {
  const file = join(ROOT, folder, 'package.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Package) : undefined;
}

/** Copies a folder without what is not needed to run, and without the packages nested in it. */
export function copyPart(folder: string, target: string): void {
  const from = join(ROOT, folder);
  const isOwn = !folder.includes('node_modules');
  cpSync(from, join(target, folder), {
    recursive: true,
    filter: (source) => {
      const inside = source.slice(from.length);
      if (inside === '/node_modules' || LEFT_OUT.test(inside)) return false;
      return !(isOwn && inside === '/test');
    },
  });
}
