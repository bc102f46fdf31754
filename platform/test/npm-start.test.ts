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

it.each([
  ['refund-desk', /proposes/],
  ['refund-desk', /for a person/],
  ['research-team', /\[historian\]/],
  ['nightly-flow', /executed/],
  ['news-feed', /receives/],
])(
  'stops the %s without a log line once it printed %s, and completes it after the next start (SYS-5)',
  async (example, pattern) => {
    const dataDir = tempFolder();
    const args = ['--example', example, '--human'];
    const first = spawnProgram('main.ts', [...args, 'ask'], { dataDir, input: 'open' });
    await first.printed(pattern);
    first.child.kill('SIGTERM');
    const { code, stderr } = await first.ended;
    expect(stderr).not.toContain('"level"');
    expect(code).toBe(0);
    const second = await run('main.ts', [...args, 'cap:800', '--exit'], { dataDir });
    expect(second).toMatchObject({ code: 0, stdout: expect.stringMatching(/^success: /m) });
    expect(second.stderr).not.toContain('"level"');
  },
);
