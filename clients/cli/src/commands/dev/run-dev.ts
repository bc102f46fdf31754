import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
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

const KEEPING = 'The platform continues with the previous version.';

/**
 * Runs the platform in a process of its own and replaces it by a new one when the project changes. The new process
 * checks the files first; with an error the old one continues.
 */
export async function runDev(dev: Dev, io: CliIo): Promise<Exit> {
  const stop = new AbortController();
  const end = (): void => stop.abort();
  process.on('SIGINT', end).on('SIGTERM', end);
  let current: ChildProcess | undefined;
  let exit: Exit = EXIT.success;
  const crashed = (child: ChildProcess): void => {
    if (stop.signal.aborted || child !== current) return;
    io.warn('The platform ended unexpectedly; its log is in .writ/dev.log.');
    exit = EXIT.error;
    stop.abort();
  };
  const followed = (child: ChildProcess): ChildProcess => child.once('exit', () => crashed(child));
  try {
    current = await replace(undefined, dev, io);
    if (current === undefined) return EXIT.error;
    followed(current);
    io.print('');
    io.print('Files are watched for changes. Stop with Ctrl-C.');
    for await (const changed of watchProject(dev.folder, stop.signal)) {
      io.print(`changed   ${changed.join(', ')}`);
      const previous: ChildProcess | undefined = current;
      // The end of the previous version is not a crash while it is replaced.
      current = undefined;
      current = (await replace(previous, dev, io)) ?? previous;
      if (current !== undefined && current !== previous) followed(current);
    }
    return exit;
  } finally {
    if (current !== undefined) await stopped(current);
    process.off('SIGINT', end).off('SIGTERM', end);
  }
}

/** Replaces the previous version by a new process; undefined when that one is invalid or does not start. */
async function replace(
  previous: ChildProcess | undefined,
  dev: Dev,
  io: CliIo,
): Promise<ChildProcess | undefined> {
  const next = start(dev);
  const checked = await message(next);
  for (const finding of findingsOf(checked)) io.warn(textOf(finding));
  if (checked.kind !== 'ready') {
    if (checked.kind === 'failed') io.warn(checked.problem);
    if (previous !== undefined) io.warn(KEEPING);
    await stopped(next);
    return undefined;
  }
  if (previous !== undefined) await stopped(previous);
  next.send('start');
  const up = await message(next);
  if (up.kind === 'up') {
    for (const line of previous === undefined ? up.lines : up.lines.slice(0, 1)) io.print(line);
    return next;
  }
  if (up.kind === 'failed') io.warn(up.problem);
  if (previous !== undefined) io.warn('No platform runs. It starts when a file changes.');
  await stopped(next);
  return undefined;
}

function start({ folder, env, main }: Dev): ChildProcess {
  return fork(main, ['dev', folder, '--process', 'platform'], {
    env: env as NodeJS.ProcessEnv,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

async function message(child: ChildProcess): Promise<FromPlatform> {
  const ended = once(child, 'exit').then(
    ([code]): FromPlatform => ({
      kind: 'failed',
      problem: `The platform ended with exit code ${String(code)}.`,
    }),
  );
  const received = once(child, 'message').then(([value]) => value as FromPlatform);
  return await Promise.race([received, ended]);
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
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
