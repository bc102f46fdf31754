import { UnavailableError } from '@writ/kernel';
import { expect, it } from 'vitest';
import { PostgresReaders } from './postgres-readers.ts';

it('rejects waiting reads after one failed attempt to open a session (SYS-4)', async () => {
  let attempts = 0;
  const readers = new PostgresReaders({
    label: 'ledger',
    connect: async () => {
      attempts += 1;
      throw new UnavailableError('STORE_UNREACHABLE', `attempt ${attempts}`);
    },
    sessions: 1,
    maxQueued: 100,
  });
  const read = () => readers.borrow(async () => expect.unreachable());
  const outcomes = await Promise.allSettled(Array.from({ length: 100 }, read));
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({ status: 'rejected', reason: { message: 'attempt 1' } });
  }
  await expect(read()).rejects.toThrow('attempt 2');
});
