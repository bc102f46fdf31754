/** `node deploy/docker/assemble.ts FOLDER`: assembles the contents of the image in a folder. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { copyPart, type Parts, PROGRAMS, packageOf, partsOfImage, ROOT } from './parts.ts';

const OWN_FILES = ['start', 'choose-models', 'credentials', 'health', 'prepare'].map(
  (name) => `deploy/docker/${name}.ts`,
);

/**
 * Assembles the contents of the image except Node: the programs, the examples, and the packages that they need at run
 * time, without packages for building or testing.
 * @throws Error if the folder exists, or if a package is not installed
 */
export function assemble(target: string): Parts {
  if (existsSync(target)) throw new Error(`${target} already exists.`);
  const parts = partsOfImage();
  for (const folder of [...parts.own, ...parts.fromRegistry]) copyPart(folder, target);
  for (const folder of parts.own) link(folder, target);
  for (const file of [...OWN_FILES, 'LICENSE']) {
    mkdirSync(dirname(join(target, file)), { recursive: true });
    copyFileSync(join(ROOT, file), join(target, file));
  }
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const described = { name: 'writ', version, private: true, type: 'module', workspaces: PROGRAMS };
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(described, null, 2)}\n`);
  return parts;
}

/** Links a package of the repository so that it can be imported by name, as npm does. */
function link(folder: string, target: string): void {
  const { name } = packageOf(folder) ?? {};
  // Some examples contain only data.
  if (name === undefined) return;
  const place = join(target, 'node_modules', name);
  mkdirSync(dirname(place), { recursive: true });
  symlinkSync(relative(dirname(place), join(target, folder)), place);
}

if (import.meta.main) {
  const [target] = process.argv.slice(2);
  if (target === undefined) throw new Error('usage: assemble.ts FOLDER');
  const { own, fromRegistry } = assemble(target);
  console.log(`${own.length} packages of Writ and ${fromRegistry.length} others in ${target}`);
}
