import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AlreadyExistsError, InvalidRequestError } from '@writ/kernel';

const TEMPLATE = fileURLToPath(new URL('../../../template', import.meta.url));
/** npm omits .gitignore files from packages, so the template has another name for it. */
const RENAMED: Readonly<Record<string, string>> = { gitignore: '.gitignore' };
const NAME = /^[a-z0-9][a-z0-9._-]*$/;

/**
 * Writes a project from the template.
 * @returns the written files, relative to the folder
 * @throws AlreadyExistsError PROJECT_EXISTS: the path exists and is not an empty folder; no file is written
 * @throws InvalidRequestError INVALID_OPTION: npm does not accept the name of the folder
 */
export function writeProject(folder: string, version: string): string[] {
  const target = resolve(folder);
  const name = basename(target);
  if (!NAME.test(name))
    throw new InvalidRequestError(
      'INVALID_OPTION',
      `${JSON.stringify(name)} is not a name for a package. Use lower-case letters, digits, ".", "_" and "-", and begin with a letter or digit.`,
      { field: 'folder' },
    );
  if (existsSync(target) && !isEmptyFolder(target))
    throw new AlreadyExistsError(
      'PROJECT_EXISTS',
      `${target} is not an empty folder. Name a folder that does not exist or is empty.`,
      { field: 'folder' },
    );
  const values: Readonly<Record<string, string>> = { name, version };
  const files = readdirSync(TEMPLATE, { recursive: true, encoding: 'utf8' })
    .filter((file) => statSync(join(TEMPLATE, file)).isFile())
    .sort();
  return files.map((file) => {
    const written = RENAMED[file] ?? file;
    const text = readFileSync(join(TEMPLATE, file), 'utf8').replaceAll(
      /\{\{(\w+)\}\}/g,
      (whole, key: string) => values[key] ?? whole,
    );
    mkdirSync(dirname(join(target, written)), { recursive: true });
    writeFileSync(join(target, written), text);
    return written;
  });
}

function isEmptyFolder(path: string): boolean {
  return statSync(path).isDirectory() && readdirSync(path).length === 0;
}
