import { readFileSync, realpathSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** Messages of Node about `import` and `export` in a file that it reads as CommonJS. */
const READ_AS_COMMONJS = /Cannot use import statement outside a module|Unexpected token 'export'/;
const MISSING_PACKAGE = /^Cannot find package '(?<name>[^']+)' imported from (?<importer>.+)/;

/**
 * Returns the reason why the import of a user's module failed and, if it is known, a fix, as a clause without a full
 * stop.
 * @param module absolute path of the module
 * @example
 * ```ts
 * import { pathToFileURL } from 'node:url';
 * import { ConfigError, loadFailure } from '@writ/config';
 *
 * const module = '/srv/agents.ts';
 * try {
 *   await import(pathToFileURL(module).href);
 * } catch (error) {
 *   throw new ConfigError('WRIT_AGENT_MODULES', [`${module} cannot be loaded: ${loadFailure(module, error)}.`]);
 * }
 * ```
 */
export function loadFailure(module: string, error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof SyntaxError && READ_AS_COMMONJS.test(message)) return commonJs(module);
  const { name, importer } = MISSING_PACKAGE.exec(message)?.groups ?? {};
  if (name !== undefined && importer !== undefined) return missingPackage(name, importer);
  return (message.split('\n')[0] ?? '').replace(/\.$/, '');
}

/**
 * Explains a file that is read as CommonJS. The file may belong to another package that the module imports; Node's
 * error message does not name the file.
 */
function commonJs(module: string): string {
  const file = findPackageJSON(pathToFileURL(module));
  if (file === undefined || typeOf(file) === 'module') {
    return 'a file that it imports is read as CommonJS; set "type": "module" in the package.json of that file';
  }
  return `it uses import or export and is read as CommonJS; set "type": "module" in ${file}`;
}

function typeOf(packageFile: string): unknown {
  return (JSON.parse(readFileSync(packageFile, 'utf8')) as { readonly type?: unknown }).type;
}

function missingPackage(name: string, importer: string): string {
  const file = importer.startsWith('file:') ? fileURLToPath(importer) : importer;
  const root = findPackageJSON(pathToFileURL(file));
  const folder = dirname(root ?? file);
  return `${file} imports the package ${name}, which is not installed; run npm install ${sourceOf(name)} in ${folder}`;
}

/**
 * Returns the argument of `npm install`: the folder of a Writ package in this installation, otherwise the name of the
 * package.
 */
function sourceOf(name: string): string {
  if (!name.startsWith('@writ/')) return name;
  try {
    const file = findPackageJSON(name, import.meta.url);
    return file === undefined ? name : dirname(realpathSync(file));
  } catch {
    return name;
  }
}
