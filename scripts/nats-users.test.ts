import { expect, it } from 'vitest';
import { readUsersConf, usersConf } from './nats-users.ts';

it('deploy/nats/users.conf matches the output of npm run nats-users (HK-2)', () => {
  expect(readUsersConf()).toBe(usersConf());
});
