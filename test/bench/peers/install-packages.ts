/**
 * Installs the packages of the peers for `npm run bench -- peers` in a separate folder, because the project does not
 * depend on them. Does nothing when they are installed.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { inputsDigest } from '../../../scripts/inputs-digest.ts';
import { runCommandIn } from '../../../scripts/run-command.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const FOLDER = join(ROOT, 'node_modules/.cache/writ-bench-peers');
const STAMP = join(FOLDER, 'made-from');
const FILES = ['package.json', 'package-lock.json'];
const INPUTS = FILES.map((name) => `test/bench/peers/${name}`);

/** Returns the folder whose node_modules has the packages, or undefined when they are not installed. */
export function installedPackages(): string | undefined {
  if (!existsSync(STAMP)) return undefined;
  return readFileSync(STAMP, 'utf8') === inputsDigest(INPUTS) ? FOLDER : undefined;
}

/**
 * Installs the pinned packages and returns their folder.
 * @throws Error with the output of npm
 */
export async function installPackages(): Promise<string> {
  const installed = installedPackages();
  if (installed !== undefined) return installed;
  console.log('installing the packages of the peers, which takes a minute or more');
  mkdirSync(FOLDER, { recursive: true });
  for (const name of FILES) copyFileSync(join(import.meta.dirname, name), join(FOLDER, name));
  // No peer needs the files that install scripts would compile or download.
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund'];
  const { code, output } = await runCommandIn(FOLDER, 'npm', 'ci', ...flags);
  if (code !== 0) throw new Error(`npm ci failed:\n${output}`);
  writeFileSync(STAMP, inputsDigest(INPUTS));
  return FOLDER;
}

/** Returns the installed version of a package, or an empty text. */
export function versionOf(name: string, folder: string): string {
  const file = join(folder, 'node_modules', name, 'package.json');
  if (!existsSync(file)) return '';
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version;
}
