import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { createWritClient } from '@writ/client';
import { expect, it, onTestFinished } from 'vitest';
import { Program, run, spawnProgram, tempFolder } from './program.ts';

const REPOSITORY = resolve(import.meta.dirname, '../..');

/** Starts a model server that never answers, and returns its base URL; closed after the test. */
async function silentModel(): Promise<string> {
  const model = createServer(() => undefined).listen(0, '127.0.0.1');
  onTestFinished(() => void model.close());
  onTestFinished(() => model.closeAllConnections());
  await once(model, 'listening');
  const { port } = model.address() as AddressInfo;
  return `http://127.0.0.1:${port}/v1`;
}

it.each(['SIGTERM', 'SIGINT'] as const)(
  'npm start exits when npm receives %s, and leaves no process behind (SYS-5)',
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

it('caches its compiled modules for later starts (PE-2)', async () => {
  const folder = resolve(import.meta.dirname, '../node_modules/.cache/compiled');
  rmSync(folder, { recursive: true, force: true });
  await run('main.ts', ['--help'], { env: { NODE_COMPILE_CACHE: '' } });
  expect(readdirSync(folder, { recursive: true }).length).toBeGreaterThan(100);
});

it('prints the address of the console only when the console is built (PE-2)', async () => {
  const WRIT_CONSOLE_DIR = tempFolder();
  const start = async () =>
    (await run('main.ts', ['--no-demo', '--exit'], { env: { WRIT_CONSOLE_DIR } })).stdout;
  expect(await start()).not.toContain('console');
  writeFileSync(join(WRIT_CONSOLE_DIR, 'index.html'), '<!doctype html>');
  expect(await start()).toMatch(/^console {3}http:\S+ {3}in a browser$/m);
});

it('npm start stops cleanly with Ctrl-C, which a terminal sends to npm and to the platform (SYS-5)', async () => {
  const args = ['--prefix', REPOSITORY, 'start', '--', '--no-demo'];
  const npm = new Program('npm', args, { ownGroup: true });
  await npm.printed(/Stop with Ctrl-C/);
  process.kill(-(npm.child.pid ?? Number.NaN), 'SIGINT');
  expect(await npm.ended).toMatchObject({ code: 0, stderr: '' });
});

it('keeps the approval pending when it stops, and prompts for it at the next start (SV-5, PE-2)', async () => {
  const dataDir = tempFolder();
  const args = ['--human', 'ask'];
  const first = spawnProgram('main.ts', args, { dataDir, input: 'open' });
  const [, approval = ''] =
    /for a person: approval (\S+)/.exec(await first.printed(/for a person: approval apr_\S+\n/)) ??
    [];
  first.child.kill('SIGTERM');
  const stopped = await first.ended;
  expect(stopped.stdout).toContain(`${approval} has no answer; the next start asks again`);
  expect(stopped.code).toBe(0);
  const second = await run('main.ts', [...args, '--exit'], { dataDir, input: '700\n' });
  expect(second.stdout).toMatch(/approved {2}approved_with_cap:700 by developer/);
  expect(second).toMatchObject({ code: 0, stdout: expect.stringContaining(approval) });
});

it('displays the additional runs of a resumed job as at the first start, without interleaving the lines of different runs (PE-2)', async () => {
  const dataDir = tempFolder();
  const args = ['--example', 'news-feed'];
  // The job cannot end before the stop.
  const env = { OPENAI_BASE_URL: await silentModel() };
  const first = spawnProgram('main.ts', args, { dataDir, env });
  await first.printed(/^newsroom: /m);
  first.child.kill('SIGTERM');
  await first.ended;
  const { code, stdout } = await run('main.ts', [...args, '--exit'], { dataDir });
  expect(code).toBe(0);
  expect(stdout.match(/concurrent with the run below/g)).toHaveLength(2);
  expect(stdout.match(/^Resuming /gm)).toHaveLength(1);
  // The output contains each step of the newsroom once, and no step of a reader. A call that the stop interrupted is
  // not counted.
  const calls = stdout.match(/^ \d {2}model(?!.*interrupted)/gm);
  expect(calls).toEqual([' 1  model', ' 2  model', ' 3  model']);
  expect(stdout.match(/^reader: Your ferry leaves/gm)).toHaveLength(1);
});

it('exits with 1 with --exit when a signal stops it before the run has ended (SYS-5)', async () => {
  const env = { OPENAI_BASE_URL: await silentModel() };
  const program = spawnProgram('main.ts', ['--exit', '--human', 'approve'], { env });
  await program.printed(/^refund-worker: /m);
  program.child.kill('SIGTERM');
  expect((await program.ended).code).toBe(1);
});

it('exits with 1 with --exit when an additional run of the example does not end with ok (SYS-5)', async () => {
  const policy = readFileSync(join(REPOSITORY, 'examples/news-feed/policy.yaml'), 'utf8');
  const file = join(tempFolder(), 'policy.yaml');
  writeFileSync(file, policy.replace('[newsroom, reader]', '[newsroom]'));
  const env = { WRIT_POLICY_FILE: file };
  const { code, stdout } = await run('main.ts', ['--exit', '--example', 'news-feed'], { env });
  expect(stdout).toMatch(/^success: /m);
  expect(code).toBe(1);
});

it('a second platform on a data folder in use does not start, and names the process that uses the folder (SYS-5)', async () => {
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
    stderr: `The data folder ${file} cannot be used: the path or one of its parents is a file; set WRIT_DATA to a writable folder.\n`,
  });
});

it.each(['main.ts', 'demo.ts'] as const)(
  'ends after a failed start of %s while its standard input is open (SYS-5, PE-2)',
  async (program) => {
    const file = join(tempFolder(), 'file');
    writeFileSync(file, '');
    const started = spawnProgram(program, ['--human', 'ask'], { dataDir: file, input: 'open' });
    const { code, stderr } = await started.ended;
    expect(stderr).toContain('cannot be used');
    expect(code).toBe(2);
  },
);

it.each([
  ['refund-desk', /proposes/],
  ['refund-desk', /for a person/],
  ['research-team', /\[historian\]/],
  ['nightly-flow', /executed/],
  ['news-feed', /receives/],
])(
  'stops the example %s without log lines once its output matches %s, and completes it at the next start (SYS-5)',
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
