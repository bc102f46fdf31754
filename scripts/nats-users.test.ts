import { expect, it } from 'vitest';
import { readUsersConf, usersConf } from './nats-users.ts';

it('finds deploy/nats/users.conf as the code would write it: npm run nats-users (HK-2)', () => {
  expect(readUsersConf()).toBe(usersConf());
});
