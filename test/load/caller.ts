import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { COMPILE_CACHE } from './program.ts';

/** A client in a process of its own, which is given orders and answers each of them. */
export interface Caller {
  /** Hands it its order; resolves with its answer, or with undefined when it died before. */
  ask(order: unknown): Promise<unknown>;
  /** kill -9. */
  kill(): Promise<void>;
}

/** Starts a client program of this folder; resolves when it is ready for orders. */
export async function startCaller(file: string): Promise<Caller> {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), {
    serialization: 'advanced',
    execArgv: [],
    env: { ...process.env, NODE_COMPILE_CACHE: COMPILE_CACHE },
  });
  const ended = once(child, 'exit').then(() => undefined);
  await Promise.race([once(child, 'message'), ended]);
  return {
    async ask(order) {
      const answer = once(child, 'message').then(([message]: unknown[]) => message);
      child.send(order as object);
      return await Promise.race([answer, ended]);
    },
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
