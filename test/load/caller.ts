import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { COMPILE_CACHE } from './program.ts';

/** A client in a child process, which answers the requests of this process. */
export interface Caller {
  /** Sends a request; resolves with the response, or with undefined when the process dies first. */
  send(request: unknown): Promise<unknown>;
  /** kill -9. */
  kill(): Promise<void>;
}

/** Starts a client program of this folder; resolves when it accepts requests. */
export async function startCaller(file: string): Promise<Caller> {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), {
    serialization: 'advanced',
    execArgv: [],
    env: { ...process.env, NODE_COMPILE_CACHE: COMPILE_CACHE },
  });
  const ended = once(child, 'exit').then(() => undefined);
  await Promise.race([once(child, 'message'), ended]);
  return {
    async send(request) {
      const answer = once(child, 'message').then(([message]: unknown[]) => message);
      child.send(request as object);
      return await Promise.race([answer, ended]);
    },
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
