import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createWritClient } from '@writ/client';
import { expect, it } from 'vitest';
import { Program, run, spawnProgram, tempFolder } from './program.ts';

const REPOSITORY = resolve(import.meta.dirname, '../..');

it.each(['SIGTERM', 'SIGINT'] as const)(
  'npm start ends with %s to npm, and leaves no process behind (SYS-5)',
  async (signal) => {
    const npm = new Program('npm', ['--prefix', REPOSITORY, 'start', '--', '--no-demo']);
    const [, baseUrl = ''] =
      /public {4}(http:\S+)/.exec(await npm.printed(/Stop with Ctrl-C/)) ?? [];
    npm.child.kill(signal);
    const { stderr } = await npm.ended;
    // A clean stop prints no warning of the platform.
    expect(stderr).not.toContain('"level"');
    const { runs } = createWritClient({ baseUrl, apiKey: 'none' });
    await expect(runs.listRuns({})).rejects.toMatchObject({ kind: 'unavailable' });
  },
);

it('a second platform on the data folder of a running one does not start, and names its process (SYS-5)', async () => {
  const dataDir = tempFolder();
  const first = spawnProgram('main.ts', ['--no-demo'], { dataDir });
  await first.printed(/Stop with Ctrl-C/);
  expect(await run('main.ts', ['--exit'], { dataDir })).toEqual({
    code: 2,
    stdout: '',
    stderr: `The data folder ${dataDir} is in use by process ${first.child.pid}; stop that process, or set WRIT_DATA to another folder.\n`,
  });
  first.child.kill('SIGKILL');
  await first.ended;
  expect(await run('main.ts', ['--no-demo', '--exit'], { dataDir })).toMatchObject({ code: 0 });
});

it('names a data folder that is a file, without a stack trace (SYS-3)', async () => {
  const file = join(tempFolder(), 'file');
  writeFileSync(file, '');
  expect(await run('main.ts', ['--exit'], { dataDir: file })).toEqual({
    code: 2,
    stdout: '',
    stderr: `The data folder ${file} cannot be used: it is a file or below one; set WRIT_DATA to a writable folder.\n`,
  });
});
