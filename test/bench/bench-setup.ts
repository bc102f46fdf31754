import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Program, startProgram } from '../load/program.ts';

/** The folder and the programs of a benchmark. */
export interface BenchSetup {
  /** A temporary folder. */
  readonly dir: string;
  /** Starts a program. */
  start(file: string, env: Readonly<Record<string, string>>): Promise<Program>;
}

/**
 * Creates the folder of a benchmark; `stack` stops the programs and deletes the folder.
 * @param profileDir folder for CPU profiles of the programs; undefined: no profiles
 */
export async function openBench(
  stack: AsyncDisposableStack,
  profileDir: string | undefined,
): Promise<BenchSetup> {
  const dir = await mkdtemp(join(tmpdir(), 'writ-bench-'));
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const flags = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`];
  return {
    dir,
    async start(file, env) {
      const program = await startProgram(file, env, flags);
      stack.defer(() => program.stop());
      return program;
    },
  };
}
