import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { waitForLine } from '@writ/testing/processes';
import { findPython, PYTHON_FOLDER } from '../../scripts/python.ts';

/** The gateway of clients/python in a process of its own. */
export interface PythonGateway {
  /** `host:port`, the same after a restart. */
  readonly address: string;
  /** Kills it with SIGKILL and starts it again on the same port and state. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * The interpreter of the Python programs; undefined, and said so, when there is none. Where toolchains are
 * required that is an error.
 */
export function requirePython(): string | undefined {
  const found = findPython();
  if ('python' in found) return found.python;
  const said = `The gateway in Python is not tested: ${found.missing}`;
  if (process.env.WRIT_REQUIRE_TOOLCHAINS === '1') throw new Error(said);
  process.stderr.write(`skipped: ${said}\n`);
  return undefined;
}

/** Starts the Python gateway and waits until it listens; the settings are those of any gateway. */
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
    // It warns of what the suite does to it; that is nobody's business unless it does not start.
    let complaints = '';
    child.stderr.on('data', (chunk) => {
      complaints += chunk;
    });
    try {
      const [, address = ''] = await waitForLine(child, /listens on (\S+)$/);
      return { child, address };
    } catch (error) {
      throw new Error(`${python} -m gateway did not start:\n${complaints}`, { cause: error });
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
