import { cpSync, existsSync, globSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

/** The root of the repository. */
export const ROOT = resolve(import.meta.dirname, '../..');

/** Programs of the image; their dependencies are added. */
export const PROGRAMS = [
  'services/supervisor',
  'services/spawn-budget',
  'services/execution-meter',
  'services/tool-gateway',
  'services/agent-worker',
  'services/agent-proxy',
  'platform',
  'clients/cli',
] as const;

/** The examples, which are used at run time although no package depends on them. */
const EXAMPLES = 'examples/*';

/** Not needed at run time: types, maps, tests, documentation. Licenses are kept. */
const EXCLUDED = /(\.d\.[cm]?ts|\.test\.[cm]?[jt]s|\.map|\/(?!licen[cs]e)[^/]*\.(md|markdown))$/i;

interface Package {
  readonly name?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

/** Folders of packages, relative to the root: those of the repository, and those from the registry. */
export interface Parts {
  readonly own: readonly string[];
  readonly fromRegistry: readonly string[];
}

/**
 * Returns the packages that the programs need at run time, resolved as Node resolves them, in the versions that npm
 * installed from the lock file.
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

/** Folder of a package that code in `folder` imports: in the nearest node_modules that has it. */
function installed(name: string, folder: string): string | undefined {
  for (let here = join(ROOT, folder); here.startsWith(ROOT); here = resolve(here, '..')) {
    const place = join(here, 'node_modules', name);
    if (existsSync(join(place, 'package.json'))) return relative(ROOT, place);
  }
  return undefined;
}

/** The peer dependencies of a package, without the optional ones. */
function neededPeers({ peerDependencies = {}, peerDependenciesMeta = {} }: Package): object {
  const needed = Object.entries(peerDependencies).filter(
    ([name]) => peerDependenciesMeta[name]?.optional !== true,
  );
  return Object.fromEntries(needed);
}

/** The package.json of a folder; undefined without one. */
export function packageOf(folder: string): Package | undefined {
  const file = join(ROOT, folder, 'package.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Package) : undefined;
}

/** Copies a folder without files that are not needed at run time, and without nested packages. */
export function copyPart(folder: string, target: string): void {
  const from = join(ROOT, folder);
  const isOwn = !folder.includes('node_modules');
  cpSync(from, join(target, folder), {
    recursive: true,
    filter: (source) => {
      const inside = source.slice(from.length);
      if (inside === '/node_modules' || EXCLUDED.test(inside)) return false;
      return !(isOwn && inside === '/test');
    },
  });
}
