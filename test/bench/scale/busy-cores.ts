import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('busy-core.ts', import.meta.url));

/** Runs `work` while other programs compete for every core of the machine. */
export async function whileCoresAreBusy<T>(work: () => Promise<T>): Promise<T> {
  const programs: ChildProcess[] = [];
  try {
    for (let core = 0; core < availableParallelism(); core += 1) {
      const program = fork(PROGRAM);
      programs.push(program);
      await once(program, 'message');
    }
    return await work();
  } finally {
    for (const program of programs) {
      const exited = once(program, 'exit');
      if (program.kill('SIGKILL')) await exited;
    }
  }
}
