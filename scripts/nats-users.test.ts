import { expect, it } from 'vitest';
import { readUsersConf, usersConf } from './nats-users.ts';

it('checks that deploy/nats/users.conf is current: npm run nats-users (HK-2)', () => {
  expect(readUsersConf()).toBe(usersConf());
});
