import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { BUILD } from './build.ts';
import { importsOf, type PackageJson, type PublicPackage, ROOT } from './public-packages.ts';

/** Where the packages are staged, a folder for each. */
export const STAGED = join(ROOT, 'dist/packages');

/** The oldest Node.js that supports type stripping and node:sqlite without a flag. */
const ENGINES = { node: '>=22.18' };

/**
 * Additional files that a package reads at run time or offers to users, by workspace: the path in the repository and
 * the path in the package.
 */
const MORE: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'clients/cli': {
    'docs/reference/schemas': 'schemas',
    'clients/cli/template': 'template',
    'test/conformance/tables': 'conformance/tables',
    'test/conformance/tools.yaml': 'conformance/tools.yaml',
  },
  'libs/contracts': { 'proto/writ': 'proto/writ' },
};

/** Folder of the console. It has no sources to compile: its page is built by `npm run console`. */
const CONSOLE = 'clients/console';

/** Whether the console is built; without it, the packages serve the API only. */
const isConsoleBuilt = existsSync(join(ROOT, CONSOLE, 'dist/index.html'));

/** A staged package. */
export interface StagedPackage {
  readonly name: string;
  readonly folder: string;
}

/**
 * Writes a package as it is published: built files in dist/, a package.json whose exports name them, and exactly the
 * dependencies that they import.
 * @throws Error naming an import that package.json does not declare
 */
export function stagePackage(
  published: PublicPackage,
  packages: ReadonlyMap<string, PublicPackage>,
): StagedPackage {
  const folder = join(STAGED, published.name.replace('@writ/', 'writ-'));
  const imported = new Set<string>();
  for (const [from, to] of builtFiles(published)) {
    const target = join(folder, to);
    mkdirSync(dirname(target), { recursive: true });
    if (!/\.(js|d\.ts)$/.test(from)) {
      cpSync(from, target);
      continue;
    }
    const code = readFileSync(from, 'utf8');
    const published = from.endsWith('.d.ts') ? withJsExtensions(code) : code;
    const renamed = withPublishedNames(published, packages);
    for (const name of importsOf(code)) imported.add(name);
    writeFileSync(target, renamed);
  }
  for (const [from, to] of Object.entries(MORE[published.folder] ?? {})) {
    if (existsSync(join(ROOT, from)))
      cpSync(join(ROOT, from), join(folder, to), { recursive: true });
  }
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  writeFileSync(join(folder, 'README.md'), readmeOf(published));
  writeFileSync(
    join(folder, 'package.json'),
    `${JSON.stringify(manifestOf(published, imported, packages), null, 2)}\n`,
  );
  return { name: published.name, folder };
}

/** Stages the built page of the console; undefined when it is not built. */
export function stageConsole(): StagedPackage | undefined {
  if (!isConsoleBuilt) return undefined;
  const { name, version, description } = JSON.parse(
    readFileSync(join(ROOT, CONSOLE, 'package.json'), 'utf8'),
  ) as PackageJson;
  const folder = join(STAGED, 'writ-console');
  cpSync(join(ROOT, CONSOLE, 'dist'), join(folder, 'dist'), { recursive: true });
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({
      name,
      version,
      description,
      license: 'Apache-2.0',
      type: 'module',
      exports: { './package.json': './package.json', './dist/*': './dist/*' },
      files: ['dist'],
    }),
  );
  return { name, folder };
}

/** Built files with their place in the package: src/ and gen/ become dist/. */
function builtFiles({ folder }: PublicPackage): (readonly [string, string])[] {
  return globSync('{src,gen}/**/*', { cwd: join(BUILD, folder) })
    .map((file) => [join(BUILD, folder, file), file.replace(/^(src|gen)\//, 'dist/')] as const)
    .filter(([from]) => statSync(from).isFile());
}

function manifestOf(
  { name, folder, json, exports }: PublicPackage,
  imported: ReadonlySet<string>,
  packages: ReadonlyMap<string, PublicPackage>,
): object {
  const declared = json.dependencies ?? {};
  const undeclared = [...imported].filter((one) => one !== json.name && !(one in declared));
  if (undeclared.length > 0)
    throw new Error(`${json.name} imports ${undeclared.join(', ')}, which it does not declare.`);
  const dependencies = Object.entries(declared)
    .filter(([one]) => imported.has(one))
    .map(([one, version]) => [packages.get(one)?.name ?? one, version]);
  return {
    name,
    version: json.version,
    description:
      json.description ?? `Part of Writ. Import writ, @writ/client or @writ/sdk instead.`,
    license: 'Apache-2.0',
    type: 'module',
    engines: ENGINES,
    exports: { ...builtExports(exports), './package.json': './package.json' },
    ...(json.bin && { bin: mapped(json.bin, (file) => built(file, 'js').replace('./', '')) }),
    files: ['dist', ...Object.values(MORE[folder] ?? {})],
    dependencies: {
      ...Object.fromEntries(dependencies),
      // The supervisor resolves the console by this package name at run time; no file imports it
      // (services/supervisor/src/console.ts).
      ...(folder === 'services/supervisor' && isConsoleBuilt && { '@writ/console': json.version }),
    },
  };
}

function builtExports(exports: Readonly<Record<string, string>>): object {
  return mapped(exports, (file) => ({ types: built(file, 'd.ts'), default: built(file, 'js') }));
}

function built(file: string, extension: string): string {
  return file.replace(/^\.\/(src|gen)\//, './dist/').replace(/ts$/, extension);
}

function mapped<T>(record: Readonly<Record<string, string>>, of: (file: string) => T): object {
  return Object.fromEntries(Object.entries(record).map(([key, file]) => [key, of(file)]));
}

/**
 * Replaces the extension `.ts` with `.js` in relative imports of declaration files, because the compiler rewrites it
 * only in JavaScript files.
 */
function withJsExtensions(code: string): string {
  return code.replace(/((?:from |import |import\()['"]\.{1,2}\/[^'"]*)\.ts(['"])/g, '$1.js$2');
}

/** Replaces the names that only the repository uses. */
function withPublishedNames(code: string, packages: ReadonlyMap<string, PublicPackage>): string {
  let result = code;
  for (const [name, { name: published }] of packages) {
    if (name !== published)
      for (const before of ["from '", "import '", "import('"])
        for (const after of ["'", '/'])
          result = result.replaceAll(`${before}${name}${after}`, `${before}${published}${after}`);
  }
  return result;
}

function readmeOf({ name, folder, json, isForUsers }: PublicPackage): string {
  const own = join(ROOT, folder, 'PACKAGE.md');
  if (existsSync(own)) return readFileSync(own, 'utf8');
  const use = isForUsers
    ? ''
    : '\n\nAn internal package of Writ: its exports may change with every version.';
  return `# ${name}\n\n${json.description ?? 'Part of Writ.'}${use}\n`;
}
