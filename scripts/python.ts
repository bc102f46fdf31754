/**
 * Prepares the Python programs: a virtual environment with their pinned packages, and the generated
 * code of the contracts. Does nothing when both are current.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { inputsDigest } from './inputs-digest.ts';
import { runCommand } from './run-command.ts';

const ROOT = resolve(import.meta.dirname, '..');
const FOLDER = join(ROOT, 'node_modules/.cache/writ-python');
const STAMP = join(FOLDER, 'made-from');
const INPUTS = [
  'clients/python/requirements.txt',
  'clients/python/generate.py',
  'proto/**/*.proto',
  'vendor/proto/**/*.proto',
];

/** Folder of the Python programs. */
export const PYTHON_FOLDER = join(ROOT, 'clients/python');

/** The prepared interpreter, or why it is missing. */
export function findPython(): { readonly python: string } | { readonly missing: string } {
  const isInstalled = existsSync(STAMP) && existsSync(join(PYTHON_FOLDER, 'gen/writ'));
  if (!isInstalled) return { missing: 'it was not installed: npm run python' };
  if (readFileSync(STAMP, 'utf8') !== inputsDigest(INPUTS)) {
    return { missing: 'packages or contracts changed since it was installed: npm run python' };
  }
  return { python: join(FOLDER, 'bin/python') };
}

async function installPython(): Promise<void> {
  if ('python' in findPython()) return;
  const python = process.env.WRIT_PYTHON || 'python3';
  const own = join(FOLDER, 'bin/python');
  await run(python, '-m', 'venv', FOLDER);
  await run(
    own,
    '-m',
    'pip',
    'install',
    '-q',
    '--disable-pip-version-check',
    '-r',
    'clients/python/requirements.txt',
  );
  await run(own, 'clients/python/generate.py');
  writeFileSync(STAMP, inputsDigest(INPUTS));
}

async function run(tool: string, ...args: readonly string[]): Promise<void> {
  const { code, output } = await runCommand(tool, ...args);
  if (code !== 0) throw new Error(`${tool} ${args.join(' ')} failed:\n${output}`);
}

if (import.meta.main) {
  await installPython();
  const found = findPython();
  if ('missing' in found) throw new Error(found.missing);
  console.log(found.python);
}
