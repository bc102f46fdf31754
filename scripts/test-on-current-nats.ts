/**
 * Runs the tests of the bus on the nats-server version VERSION, which Linux distributions do not package yet. Builds
 * nats-server with `go install` and caches the binary. Passes its arguments to vitest.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { runCommand } from './run-command.ts';

const VERSION = '2.15.2';
const FOLDER = resolve(import.meta.dirname, `../node_modules/.cache/writ-nats/${VERSION}`);
const SERVER = join(FOLDER, 'nats-server');

async function buildServer(): Promise<void> {
  if (existsSync(SERVER)) return;
  const source = `github.com/nats-io/nats-server/v2@v${VERSION}`;
  const { code, output } = await runCommand('env', `GOBIN=${FOLDER}`, 'go', 'install', source);
  if (code !== 0) throw new Error(`nats-server ${VERSION} could not be built:\n${output}`);
}

await buildServer();
const projects = ['--project', 'tests', '--project', 'slow'];
const args = ['run', ...projects, 'libs/bus/', ...process.argv.slice(2)];
const { status } = spawnSync('vitest', args, {
  stdio: 'inherit',
  env: { ...process.env, WRIT_NATS_SERVER: SERVER },
});
process.exitCode = status ?? 1;
