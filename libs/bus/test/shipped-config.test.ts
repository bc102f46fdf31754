import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { OBSERVER_USER, SERVICE_USERS } from '../src/index.ts';

const CONFIG = resolve(import.meta.dirname, '../../../deploy/nats/nats-server.conf');
// Set by `npm run test:nats`: a current server. The server of the distribution does not know all settings.
const { WRIT_NATS_SERVER: server } = process.env;

it.runIf(server)('accepts the configuration in deploy/nats (SYS-5)', async () => {
  const passwords = [...SERVICE_USERS, OBSERVER_USER].map(({ passwordVariable }) => [
    passwordVariable,
    'secret',
  ]);
  const env = { ...process.env, ...Object.fromEntries(passwords) };
  const { stderr } = await promisify(execFile)(server ?? '', ['-t', '-c', CONFIG], { env });
  expect(stderr).toContain('configuration file');
});
