import { expect, it } from 'vitest';
import { endsConnection, translatePostgresError } from './postgres-errors.ts';

function withCode(code: string): Error {
  return Object.assign(new Error(`write ${code}`), { code });
}

it.each(['EPIPE', 'ECONNRESET', 'EPERM', '57P01', '08006'])(
  'reports %s as a lost connection (SYS-4)',
  (code) => {
    expect(endsConnection(withCode(code))).toBe(true);
    expect(translatePostgresError(withCode(code), 'the database')).toMatchObject({
      kind: 'unavailable',
      reason: 'STORE_UNREACHABLE',
    });
  },
);

it('passes constraint violations through (SYS-4)', () => {
  const violation = withCode('23505');
  expect(endsConnection(violation)).toBe(false);
  expect(translatePostgresError(violation, 'the database')).toBe(violation);
});
