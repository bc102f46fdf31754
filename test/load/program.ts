import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { waitForLine } from '@writ/testing/processes';

/** A server in a process of its own. */
export interface Program {
  /** `host:port`, as its first line said. */
  readonly address: string;
  /** `host:port` for clients; empty when it has no such door. */
  readonly edgeAddress: string;
  /** Milliseconds of processor time that it has used so far, all its threads; undefined where the system does not say. */
  cpuMs(): number | undefined;
  /** SIGTERM; resolves when it has ended. */
  stop(): Promise<void>;
  /** kill -9; resolves when it is gone. */
  kill(): Promise<void>;
}

/** Where processes keep compiled modules for those that start after them: a third of a start is compiling. */
export const COMPILE_CACHE = process.env.NODE_COMPILE_CACHE ?? join(tmpdir(), 'writ-compile-cache');

/** The service processes as their users start them. */
export const SERVICE_MAINS = {
  'execution-meter': pathOf('../../services/execution-meter/src/main.ts'),
  'spawn-budget': pathOf('../../services/spawn-budget/src/main.ts'),
  supervisor: pathOf('../../services/supervisor/src/main.ts'),
  'tool-gateway': pathOf('../../services/tool-gateway/src/main.ts'),
} as const;

/**
 * Starts a TypeScript program with these variables and no others, and waits for its line
 * `… listens on <address>`.
 * @param flags for node itself
 */
export async function startProgram(
  file: string,
  env: Readonly<Record<string, string>>,
  flags: readonly string[] = [],
): Promise<Program> {
  const child = spawn(process.execPath, [...flags, file], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  const ended = once(child, 'exit');
  const listens = /listens on ([^\s,]+)(?:, for clients on (\S+))?$/;
  const [, address = '', edgeAddress = ''] = await waitForLine(child, listens);
  const cpuMs = () => processorMs(child.pid);
  return { address, edgeAddress, cpuMs, stop: () => end('SIGTERM'), kill: () => end('SIGKILL') };
}

/** Linux counts it in hundredths of a second, in the 14th and 15th field of this file. */
function processorMs(pid: number | undefined): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The 2nd field, in brackets, may hold blanks; the 3rd follows it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return undefined;
  }
}

function pathOf(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}
