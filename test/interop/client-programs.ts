import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { findInteropClients } from '../../scripts/interop-clients.ts';

const found = findInteropClients();
if ('missing' in found) {
  const notice = `The clients of other projects are not tested: ${found.missing}`;
  if (process.env.WRIT_REQUIRE_TOOLCHAINS === '1') throw new Error(notice);
  process.stderr.write(`skipped: ${notice}\n`);
}

/** Whether the pinned clients of other projects are installed. */
export const HAS_CLIENTS = 'folder' in found;

const { folder, python } = 'missing' in found ? { folder: '', python: '' } : found;

/** The folder with the installed packages of these clients. */
export const CLIENTS_FOLDER = folder;

/** How a program ended. */
export interface Ended {
  readonly code: number | null;
  /** Text that the program wrote to standard output and standard error. */
  readonly output: string;
  readonly stdout: string;
}

/** The settings with which an SDK sends its model requests to the endpoint at `origin`. */
export function modelEnv(
  origin: string,
  key: string,
  model: string,
): Readonly<Record<string, string>> {
  return {
    OPENAI_BASE_URL: `${origin}/v1`,
    OPENAI_API_KEY: key,
    ANTHROPIC_BASE_URL: origin,
    ANTHROPIC_API_KEY: key,
    MODEL: model,
  };
}

/** Runs a program of test/interop/clients to its end; the program inherits only PATH and the compile cache. */
export async function runClient(
  program: string,
  env: Readonly<Record<string, string>>,
): Promise<Ended> {
  const command = program.endsWith('.py') ? python : process.execPath;
  return await runProgram(command, [join(folder, program)], { cwd: folder, env });
}

/**
 * Runs a command to its end; the command inherits only PATH and the compile cache. Its processes are killed after the
 * test.
 */
export function runProgram(
  command: string,
  args: readonly string[],
  { cwd, env }: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      // Starts a separate process group, because launchers do not kill the programs that they start.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        // Disables telemetry, which would connect to other machines.
        OPENAI_AGENTS_DISABLE_TRACING: '1',
        LANGSMITH_TRACING: 'false',
        ...env,
      },
    });
    onTestFinished(() => killGroup(child.pid));
    let [output, stdout] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      output += part;
      stdout += part;
    });
    child.stderr.setEncoding('utf8').on('data', (part: string) => {
      output += part;
    });
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output, stdout }));
  });
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
