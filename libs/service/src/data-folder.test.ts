import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { lockDataFolder } from './data-folder.ts';

/**
 * A process that locks the folder passed as argument, prints the outcome, and runs until its input ends. It keeps no
 * reference to the lock and forces a garbage collection.
 */
const LOCKER = `
  import { lockDataFolder } from ${JSON.stringify(join(import.meta.dirname, 'data-folder.ts'))};
  process.stdin.resume();
  process.stdin.once('data', async () => {
    try {
      await lockDataFolder(process.argv[1], ['meter', 'supervisor']);
      setImmediate(() => {
        gc();
        console.log('locked');
      });
    } catch (error) {
      console.log(error.reason + ' ' + error.message);
      process.exit(3);
    }
  });
  console.log('ready');
`;

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'writ-lock-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

interface Locker {
  readonly child: ChildProcess;
  /** Starts to lock; resolves with the outcome. */
  lock(): Promise<string>;
}

async function startLocker(dir: string): Promise<Locker> {
  const child = spawn(process.execPath, ['--expose-gc', '--input-type=module', '-e', LOCKER, dir], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const line = async () => String((await once(child.stdout, 'data'))[0]).trim();
  expect(await line()).toBe('ready');
  return {
    child,
    lock: () => {
      const outcome = line();
      child.stdin.write('go\n');
      return outcome;
    },
  };
}

it('locks a data folder for one of several processes, and reports its process id to the others (SYS-5)', async () => {
  const dir = folder();
  const lockers = await Promise.all(Array.from({ length: 5 }, () => startLocker(dir)));
  const outcomes = await Promise.all(lockers.map((one) => one.lock()));
  const winners = lockers.filter((_, at) => outcomes[at] === 'locked');
  expect(winners, outcomes.join('\n')).toHaveLength(1);
  const pid = winners[0]?.child.pid;
  const refusal = `DATA_FOLDER_LOCKED The data folder ${dir} is in use by process ${pid}; stop that process, or set WRIT_DATA to another folder.`;
  expect(outcomes.filter((outcome) => outcome !== 'locked')).toEqual(Array(4).fill(refusal));
});

it('takes over the data folder of a killed process at once (SYS-5)', async () => {
  const dir = folder();
  const first = await startLocker(dir);
  expect(await first.lock()).toBe('locked');
  await expect(lockDataFolder(dir, ['supervisor'])).rejects.toMatchObject({
    reason: 'DATA_FOLDER_LOCKED',
    metadata: { pid: String(first.child.pid) },
  });
  first.child.kill('SIGKILL');
  await once(first.child, 'exit');
  const lock = await lockDataFolder(dir, ['supervisor']);
  onTestFinished(() => lock.release());
  await expect(lockDataFolder(dir, ['supervisor'])).rejects.toMatchObject({
    metadata: { pid: String(process.pid) },
  });
});

it('lets processes share a data folder only if they have no service in common (SYS-5)', async () => {
  const dir = folder();
  const meter = await lockDataFolder(dir, ['meter']);
  const supervisor = await lockDataFolder(dir, ['supervisor']);
  const both = ['supervisor', 'meter'];
  supervisor.release();
  await expect(lockDataFolder(dir, both)).rejects.toMatchObject({ reason: 'DATA_FOLDER_LOCKED' });
  meter.release();
  const platform = await lockDataFolder(dir, both);
  await expect(lockDataFolder(dir, ['meter'])).rejects.toMatchObject({
    reason: 'DATA_FOLDER_LOCKED',
  });
  platform.release();
});

it('releases the lock when it cannot write its process id, and names the file in the error (SYS-3)', async () => {
  const dir = folder();
  const pidFile = join(dir, 'locks/supervisor.pid');
  const obstacle = `${pidFile}.tmp`;
  mkdirSync(obstacle, { recursive: true });
  const lock = () => lockDataFolder(dir, ['meter', 'supervisor']);
  await expect(lock()).rejects.toMatchObject({
    reason: 'INVALID_FILE',
    message: expect.stringContaining(`${pidFile} cannot be written`),
  });
  rmSync(obstacle, { recursive: true });
  (await lock()).release();
});

it('rejects a data folder that is a file and names it in the error (SYS-3)', async () => {
  const file = join(folder(), 'file');
  writeFileSync(file, '');
  for (const dir of [file, join(file, 'below')]) {
    await expect(lockDataFolder(dir, ['meter'])).rejects.toThrow(
      `The data folder ${dir} cannot be used: the path or one of its parents is a file; set WRIT_DATA to a writable folder.`,
    );
  }
});

it.skipIf(process.platform !== 'linux')(
  'rejects a folder that the file system cannot create, instead of retrying forever (SYS-3)',
  async () => {
    const { lock } = await startLocker('/proc/writ/data');
    expect(await lock()).toBe(
      'INVALID_FILE The data folder /proc/writ/data cannot be used: ENOENT; set WRIT_DATA to a writable folder.',
    );
  },
);
