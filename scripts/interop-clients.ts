/**
 * Installs the unmodified clients of other projects that tests run against agent-proxy, with pinned packages. They are
 * not dependencies of the repository. Does nothing when they are current.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { inputsDigest } from './inputs-digest.ts';
import { runCommand, runCommandIn } from './run-command.ts';

const ROOT = resolve(import.meta.dirname, '..');
const SOURCE = join(ROOT, 'test/interop/clients');
const FOLDER = join(ROOT, 'node_modules/.cache/writ-interop-clients');
const STAMP = join(FOLDER, 'made-from');
const INPUTS = ['test/interop/clients/{package*.json,requirements.txt}'];
const PYTHON = join(FOLDER, 'python/bin/python');

/** The installed clients: a folder with the programs, and the interpreter of the Python ones. */
export interface InteropClients {
  readonly folder: string;
  readonly python: string;
}

/** The installed clients, or why they are missing. */
export function findInteropClients(): InteropClients | { readonly missing: string } {
  if (!existsSync(STAMP)) return { missing: 'they were not installed: npm run interop-clients' };
  if (readFileSync(STAMP, 'utf8') !== inputsDigest(INPUTS)) {
    return { missing: 'they changed since they were installed: npm run interop-clients' };
  }
  // The programs are copied next to the installed packages, because they resolve packages relative to their own folder.
  cpSync(SOURCE, FOLDER, { recursive: true });
  return { folder: FOLDER, python: PYTHON };
}

async function installInteropClients(): Promise<void> {
  if ('folder' in findInteropClients()) return;
  mkdirSync(FOLDER, { recursive: true });
  cpSync(SOURCE, FOLDER, { recursive: true });
  await check(
    runCommandIn(FOLDER, 'npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'),
  );
  const python = process.env.WRIT_PYTHON || 'python3';
  await check(runCommand(python, '-m', 'venv', join(FOLDER, 'python')));
  const pip = ['-m', 'pip', 'install', '-q', '--disable-pip-version-check'];
  await check(runCommand(PYTHON, ...pip, '-r', join(SOURCE, 'requirements.txt')));
  writeFileSync(STAMP, inputsDigest(INPUTS));
}

async function check(command: ReturnType<typeof runCommand>): Promise<void> {
  const { code, output } = await command;
  if (code !== 0) throw new Error(`The clients could not be installed:\n${output}`);
}

if (import.meta.main) {
  await installInteropClients();
  const found = findInteropClients();
  if ('missing' in found) throw new Error(found.missing);
  console.log(found.folder);
}
