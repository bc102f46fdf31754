import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { waitForLine } from '@writ/testing/processes';

/** A server in its own process. */
export interface Program {
  /** `host:port` of its listener, from the line `… listens on <address>`. */
  readonly address: string;
  /** `host:port` of the client listener; empty when the server has none. */
  readonly edgeAddress: string;
  /**
   * CPU time of all threads since the start of the process, milliseconds; undefined when the system does not report it.
   */
  cpuMs(): number | undefined;
  /** Sends SIGTERM; resolves when the process has exited. */
  stop(): Promise<void>;
  /** Sends SIGKILL; resolves when the process has exited. */
  kill(): Promise<void>;
}

/** Compile cache that the child processes share; without it, compilation takes a third of the startup time. */
export const COMPILE_CACHE = process.env.NODE_COMPILE_CACHE ?? join(tmpdir(), 'writ-compile-cache');

/** Entry points of the service processes. */
export const SERVICE_MAINS = {
  'execution-meter': pathOf('../../services/execution-meter/src/main.ts'),
  'spawn-budget': pathOf('../../services/spawn-budget/src/main.ts'),
  supervisor: pathOf('../../services/supervisor/src/main.ts'),
  'tool-gateway': pathOf('../../services/tool-gateway/src/main.ts'),
} as const;

/**
 * Starts a TypeScript program with these environment variables, PATH and the compile cache, and waits for its line
 * `… listens on <address>`.
 * @param flags flags of node
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

/**
 * Returns the CPU time of all threads of a process since its start, milliseconds; undefined when the system does not
 * report it. Reads fields 14 and 15 of /proc/PID/stat, in units of 10 ms.
 */
export function processorMs(pid: number | undefined): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field, in parentheses, may contain spaces; the third field follows it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return undefined;
  }
}

function pathOf(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}
