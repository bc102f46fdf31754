/**
 * Builds the Go program: the code of the contracts, with the generators of its go.mod, and the
 * binary. Does nothing when it is current.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { inputsDigest } from './inputs-digest.ts';
import { runCommandIn } from './run-command.ts';

const ROOT = resolve(import.meta.dirname, '..');
const FOLDER = join(ROOT, 'node_modules/.cache/writ-go');
const BINARY = join(FOLDER, 'caller');
const STAMP = join(FOLDER, 'made-from');
const INPUTS = [
  'clients/go/*.go',
  'clients/go/go.{mod,sum}',
  'clients/go/buf.gen.yaml',
  'proto/**/*.proto',
  'vendor/proto/buf/**/*.proto',
];

/** The Go client, or why it is missing. */
export function findGoCaller(): { readonly binary: string } | { readonly missing: string } {
  if (!existsSync(STAMP) || !existsSync(BINARY)) return { missing: 'it was not built: npm run go' };
  if (readFileSync(STAMP, 'utf8') !== inputsDigest(INPUTS)) {
    return { missing: 'it, or a contract, changed since it was built: npm run go' };
  }
  return { binary: BINARY };
}

async function buildGoCaller(): Promise<void> {
  if ('binary' in findGoCaller()) return;
  mkdirSync(FOLDER, { recursive: true });
  await run('buf', 'generate');
  await run('go', 'vet', './...');
  await run('go', 'build', '-o', BINARY, '.');
  writeFileSync(STAMP, inputsDigest(INPUTS));
}

async function run(tool: string, ...args: readonly string[]): Promise<void> {
  const { code, output } = await runCommandIn('clients/go', tool, ...args);
  if (code !== 0) throw new Error(`${tool} ${args.join(' ')} failed:\n${output}`);
}

if (import.meta.main) {
  await buildGoCaller();
  const found = findGoCaller();
  if ('missing' in found) throw new Error(found.missing);
  console.log(found.binary);
}
