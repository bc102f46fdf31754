import { spawnSync } from 'node:child_process';
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../../..');
const MAIN = resolve(import.meta.dirname, '../src/main.ts');

/** Writes the URL of each loaded module to file descriptor 3. */
const RECORDER = `
import { writeSync } from 'node:fs';
import { registerHooks } from 'node:module';
registerHooks({
  load(url, context, nextLoad) {
    writeSync(3, url + '\\n');
    return nextLoad(url, context);
  },
});`;

/** Runs a command in a separate process; returns its exit code and the packages that it loaded. */
function run(args: readonly string[]) {
  const recorder = `data:text/javascript,${encodeURIComponent(RECORDER)}`;
  const { status, output } = spawnSync(process.execPath, ['--import', recorder, MAIN, ...args], {
    env: {
      ...process.env,
      WRIT_ADDRESS: '127.0.0.1:1',
      WRIT_API_KEY: 'key',
      WRIT_DATA: import.meta.dirname,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    encoding: 'utf8',
  });
  const urls = (output[3] ?? '').split('\n').filter((url) => url.startsWith('file:'));
  return { exit: status, packages: [...new Set(urls.map(packageOf))].sort() };
}

/** The name of an installed package, or the folder of a workspace. */
function packageOf(url: string): string {
  const installed = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1];
  const [parent, folder] = relative(ROOT, fileURLToPath(url)).split('/');
  return installed ?? (parent === 'platform' ? parent : `${parent}/${folder}`);
}

it('prints help without loading the dependencies of the commands (PE-2)', () => {
  expect(run(['--help'])).toEqual({
    exit: 0,
    packages: ['clients/cli', 'commander', 'libs/identity'],
  });
});

const CLIENT = ['client', 'contracts', 'identity', 'kernel', 'rpc'];

it.each([
  ['approvals list', 2, CLIENT],
  ['runs list', 2, CLIENT],
  ['keys list', 0, ['contracts', 'identity', 'kernel', 'rpc', 'telemetry']],
])('runs %s without loading services or the platform (PE-2)', (line, exit, libs) => {
  const { packages, ...ended } = run(line.split(' '));
  const workspaces = packages.filter((name) => /^(libs|clients|services|platform)\b/.test(name));
  expect(ended).toEqual({ exit });
  expect(workspaces).toEqual(['clients/cli', ...libs.map((name) => `libs/${name}`)]);
});
