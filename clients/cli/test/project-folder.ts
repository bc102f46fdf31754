import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { onTestFinished } from 'vitest';
import { runCli } from '../src/cli.ts';
import type { Output } from './command.ts';

/** A project that `writ init` created in a temporary folder; it uses the packages of this repository. */
export interface ProjectFolder {
  readonly folder: string;
  /** Replaces a text in a file; throws if the file does not contain it. */
  change(file: string, text: string, by: string): void;
  write(file: string, text: string): void;
  remove(file: string): void;
}

/** Runs `writ` with exactly these environment variables. */
export async function writ(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Output> {
  const out: string[] = [];
  const err: string[] = [];
  const exit = await runCli(args, {
    env,
    print: (line) => out.push(line),
    warn: (line) => err.push(line),
  });
  return { exit, out, err };
}

/** Creates a project; it is removed when the test ends. */
export async function createProject(): Promise<ProjectFolder> {
  const parent = mkdtempSync(join(tmpdir(), 'writ-init-'));
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
  const folder = join(parent, 'my-agents');
  await writ(['init', folder]);
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(
    resolve(import.meta.dirname, '../../../node_modules/@writ'),
    join(folder, 'node_modules/@writ'),
  );
  return {
    folder,
    change: (file, text, by) => {
      const before = readFileSync(join(folder, file), 'utf8');
      if (!before.includes(text)) throw new Error(`${file} does not contain ${text}`);
      writeFileSync(join(folder, file), before.replace(text, by));
    },
    write: (file, text) => writeFileSync(join(folder, file), text),
    remove: (file) => rmSync(join(folder, file)),
  };
}
