import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { waitForLine } from '@writ/testing/processes';
import { findPython, PYTHON_FOLDER } from '../../scripts/python.ts';

/** The gateway of clients/python in its own process. */
export interface PythonGateway {
  /** `host:port`, the same after a restart. */
  readonly address: string;
  /** Kills the gateway with SIGKILL and restarts it on the same port and data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Returns the Python interpreter, or prints a notice and returns undefined when there is none.
 * @throws Error when WRIT_REQUIRE_TOOLCHAINS is 1 and there is none
 */
export function requirePython(): string | undefined {
  const found = findPython();
  if ('python' in found) return found.python;
  const notice = `The Python gateway is not tested: ${found.missing}`;
  if (process.env.WRIT_REQUIRE_TOOLCHAINS === '1') throw new Error(notice);
  process.stderr.write(`skipped: ${notice}\n`);
  return undefined;
}

/** Starts the Python gateway with these environment variables and waits until it listens. */
export async function startPythonGateway(
  python: string,
  settings: Readonly<Record<string, string>>,
): Promise<PythonGateway> {
  const start = async (port: string): Promise<{ child: ChildProcess; address: string }> => {
    const child = spawn(python, ['-m', 'gateway'], {
      cwd: PYTHON_FOLDER,
      env: { ...process.env, ...settings, WRIT_TOOL_GATEWAY_PORT: port },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    // The suite provokes warnings; they matter only when the gateway does not start.
    let stderr = '';
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    try {
      const [, address = ''] = await waitForLine(child, /listens on (\S+)$/);
      return { child, address };
    } catch (error) {
      throw new Error(`${python} -m gateway did not start:\n${stderr}`, { cause: error });
    }
  };
  const end = async (child: ChildProcess, signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  };
  let running = await start('0');
  const { address } = running;
  return {
    address,
    restart: async () => {
      await end(running.child, 'SIGKILL');
      running = await start(address.split(':')[1] ?? '0');
    },
    stop: () => end(running.child, 'SIGTERM'),
  };
}
