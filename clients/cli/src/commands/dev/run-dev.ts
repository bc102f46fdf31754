import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import type { Finding } from '@writ/platform';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FromPlatform } from './serve-platform.ts';
import { watchProject } from './watch-project.ts';

interface Dev {
  readonly folder: string;
  readonly env: CliIo['env'];
  /** Absolute path of the entry point of the command. */
  readonly main: string;
}

const PREVIOUS_CONTINUES = 'The platform continues with the previous version.';
const NOT_RUNNING = 'The platform is not running. It starts when a file changes.';

/**
 * Runs the platform in a child process, and replaces it with a new one when the project changes. The new process checks
 * the files first; if they are invalid, the previous process continues.
 */
export async function runDev(dev: Dev, io: CliIo): Promise<Exit> {
  const ending = new AbortController();
  const dataDir = resolve(dev.env.WRIT_DATA || join(dev.folder, '.writ'));
  // Starts watching before the platform reads the files, so that changes during the start are detected.
  const changes = watchProject(dev.folder, dataDir, ending.signal);
  const end = (): void => ending.abort();
  process.on('SIGINT', end).on('SIGTERM', end);
  let current: ChildProcess | undefined;
  let exit: Exit = EXIT.success;
  const watchExit = (child: ChildProcess): void => {
    child.once('exit', () => {
      if (ending.signal.aborted || child !== current) return;
      io.warn('The platform ended unexpectedly; its log is dev.log in the data folder.');
      exit = EXIT.error;
      ending.abort();
    });
  };
  try {
    current = await replace(undefined, dev, io);
    if (current === undefined) return EXIT.error;
    watchExit(current);
    io.print('');
    io.print('Files are watched for changes. Stop with Ctrl-C.');
    for await (const changed of changes) {
      io.print(`changed   ${changed.join(', ')}`);
      const previous: ChildProcess | undefined = current;
      // The exit of the previous process during its replacement is not a crash.
      current = undefined;
      current = await replace(previous, dev, io);
      if (current !== undefined) {
        watchExit(current);
      } else if (previous !== undefined && isRunning(previous)) {
        io.warn(PREVIOUS_CONTINUES);
        current = previous;
      } else {
        io.warn(NOT_RUNNING);
      }
    }
    return exit;
  } finally {
    if (current !== undefined) await stop(current);
    process.off('SIGINT', end).off('SIGTERM', end);
  }
}

/**
 * Starts a new process and, if its files are valid, stops the previous one. Returns undefined if the files are invalid
 * (the previous process continues) or the new process fails to start.
 */
async function replace(
  previous: ChildProcess | undefined,
  dev: Dev,
  io: CliIo,
): Promise<ChildProcess | undefined> {
  const next = start(dev);
  const checked = await message(next);
  for (const finding of findingsOf(checked)) io.warn(textOf(finding));
  if (checked.kind === 'ready') {
    if (previous !== undefined) await stop(previous);
    // If the new process has ended while the previous one stopped, the message fails, and the end is reported below.
    next.send('start', () => undefined);
    const up = await message(next);
    if (up.kind === 'up') {
      for (const line of previous === undefined ? up.lines : up.lines.slice(0, 1)) io.print(line);
      return next;
    }
    if (up.kind === 'failed') io.warn(up.problem);
  } else if (checked.kind === 'failed') {
    io.warn(checked.problem);
  }
  await stop(next);
  return undefined;
}

function start({ folder, env, main }: Dev): ChildProcess {
  return fork(main, ['dev', folder, '--process', 'platform'], {
    env: env as NodeJS.ProcessEnv,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

/** Returns the next message of the platform process; `failed` if the process ends first or has already ended. */
async function message(child: ChildProcess): Promise<FromPlatform> {
  if (!isRunning(child)) return endOf(child);
  const ended = once(child, 'exit').then(() => endOf(child));
  const received = once(child, 'message').then(([value]) => value as FromPlatform);
  return await Promise.race([received, ended]);
}

function endOf({ exitCode, signalCode }: ChildProcess): FromPlatform {
  return {
    kind: 'failed',
    problem: `The platform ended with ${signalCode ?? `exit code ${exitCode}`}.`,
  };
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}

async function stop(child: ChildProcess): Promise<void> {
  if (!isRunning(child)) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  await exit;
}

function findingsOf(message: FromPlatform): readonly Finding[] {
  return message.kind === 'ready' || message.kind === 'invalid' ? message.findings : [];
}

function textOf({ severity, text }: Finding): string {
  return `${severity.padEnd(9)} ${text}`;
}
