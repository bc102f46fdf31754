/** Writes deploy/nats/users.conf: who may publish and see what on the NATS server. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { natsAuthorization, SERVICE_USERS } from '@writ/bus';

const FILE = join(resolve(import.meta.dirname, '..'), 'deploy/nats/users.conf');

/** What the file must hold. */
export function usersConf(): string {
  const head =
    '# Made by `npm run nats-users` from libs/bus; passwords come from the environment.\n';
  return head + natsAuthorization(SERVICE_USERS);
}

/** What the file holds. */
export function readUsersConf(): string {
  return readFileSync(FILE, 'utf8');
}

if (import.meta.main) writeFileSync(FILE, usersConf());
