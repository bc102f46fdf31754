import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** Root of the repository. */
export const ROOT = resolve(import.meta.dirname, '../..');

/** The parts of a package.json that packing reads. */
export interface PackageJson {
  readonly name: string;
  readonly version: string;
  readonly description?: string;
  readonly exports?: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  /** Set only in the packages that users import; `name` and `exports` replace the fields of the same name. */
  readonly publishConfig?: {
    readonly access: string;
    readonly name?: string;
    readonly exports?: Readonly<Record<string, string>>;
  };
}

/** A workspace that is published, because users or another published package import it. */
export interface PublicPackage {
  /** The name in the registry. */
  readonly name: string;
  /** Folder of the workspace, relative to the root. */
  readonly folder: string;
  readonly json: PackageJson;
  /** Public subpaths and the source files behind them, relative to the folder. */
  readonly exports: Readonly<Record<string, string>>;
  /** Whether users import it by name. */
  readonly isForUsers: boolean;
}

/** Every workspace that may be published, by the name that the repository uses for it. */
export function publishable(): ReadonlyMap<string, PublicPackage> {
  const folders = ['libs', 'services', 'clients']
    .flatMap((parent) => readdirSync(join(ROOT, parent)).map((name) => join(parent, name)))
    .concat('platform')
    // The console has no modules to import; its built page is staged as it is.
    .filter((folder) => folder !== 'clients/console')
    .filter((folder) => existsSync(join(ROOT, folder, 'package.json')));
  return new Map(
    folders.map((folder) => {
      const json = JSON.parse(
        readFileSync(join(ROOT, folder, 'package.json'), 'utf8'),
      ) as PackageJson;
      const { publishConfig } = json;
      return [
        json.name,
        {
          name: publishConfig?.name ?? json.name,
          folder,
          json,
          exports: publishConfig?.exports ?? json.exports ?? {},
          isForUsers: publishConfig !== undefined,
        },
      ];
    }),
  );
}

const SPECIFIER =
  /(?:\bfrom\s+|\bimport\s+|\bimport\(\s*)(['"])(?<specifier>(?:@[\w.-]+\/|\.{1,2}\/)?[\w.*-]+[^'"\s]*)\1/g;

/** Package names that a file imports, without the modules of Node. */
export function importsOf(code: string): string[] {
  return specifiersOf(code)
    .filter((one) => !one.startsWith('.') && !one.startsWith('node:'))
    .map((one) => one.split('/', one.startsWith('@') ? 2 : 1).join('/'));
}

/** The files that a file imports by relative paths. */
export function relativeImportsOf(code: string): string[] {
  return specifiersOf(code).filter((one) => one.startsWith('.'));
}

/**
 * Returns the module specifiers of the imports in a file. Comments are skipped, because examples in comments import
 * modules that the file does not import.
 */
function specifiersOf(code: string): string[] {
  const found = code.replaceAll(/^\s*(?:\*|\/[*/]).*$/gm, '').matchAll(SPECIFIER);
  return [...found].map(({ groups }) => groups?.specifier ?? '');
}
