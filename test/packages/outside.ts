import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import type { Registry } from './registry.ts';

/** Result of a command: exit code, and both streams in the order of arrival. */
export interface Result {
  readonly code: number | null;
  readonly output: string;
}

/** A running command. */
export interface Running {
  readonly pid: number | undefined;
  output(): string;
  readonly ended: Promise<Result>;
  stop(): Promise<Result>;
}

/** A folder outside of the repository, with its own npm cache and without any settings of Writ. */
export interface Outside {
  readonly folder: string;
  readonly registry: Registry;
  /** Starts a shell command with the Node of the repository, or the one in `node`, first in PATH. */
  start(command: string, options?: { readonly cwd?: string; readonly node?: string }): Running;
  run(
    command: string,
    options?: { readonly cwd?: string; readonly node?: string },
  ): Promise<Result>;
  close(): void;
}

/** The temporary folder of tests is in memory, which installed packages would fill. */
const PARENT = '/var/tmp';

/** Creates the folder; npm installs from `registry`. */
export function createOutside(registry: Registry): Outside {
  const folder = mkdtempSync(join(PARENT, 'writ-outside-'));
  const userconfig = join(folder, '.npmrc');
  writeFileSync(
    userconfig,
    // By default, npm would wait five minutes for a hanging request, as long as the test may take.
    `registry=${registry.url}/\ncache=${join(folder, 'npm-cache')}\nfetch-timeout=30000\naudit=false\nfund=false\nupdate-notifier=false\n`,
  );
  const start: Outside['start'] = (command, { cwd = folder, node = process.execPath } = {}) => {
    mkdirSync(cwd, { recursive: true });
    const child = spawn('bash', ['-c', command], {
      cwd,
      // Only the environment variables that every shell has.
      env: {
        HOME: folder,
        PATH: [dirname(resolve(node)), process.env.PATH].join(delimiter),
        npm_config_userconfig: userconfig,
      },
      // Its own process group, so that a stop reaches npx and its child.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        output += chunk;
      });
    const ended = new Promise<Result>((done) => {
      child.on('close', (code) => done({ code, output }));
    });
    return {
      pid: child.pid,
      output: () => output,
      ended,
      stop: async () => {
        const isRunning = child.exitCode === null && child.signalCode === null;
        if (isRunning && child.pid !== undefined) process.kill(-child.pid, 'SIGINT');
        return await ended;
      },
    };
  };
  return {
    folder,
    registry,
    start,
    run: async (command, options) => await start(command, options).ended,
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}
