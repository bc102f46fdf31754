import { PreconditionError } from '@writ/kernel';
import { expect, it } from 'vitest';
import {
  endsConnection,
  translateBeginError,
  translatePostgresError,
  translateSessionError,
} from './postgres-errors.ts';

function withCode(code: string): Error {
  return Object.assign(new Error(`write ${code}`), { code });
}

it.each(['EPIPE', 'ECONNRESET', 'EPERM', '57P01', '08006'])(
  'reports %s as a lost connection (SYS-4)',
  (code) => {
    expect(endsConnection(withCode(code))).toBe(true);
    expect(translatePostgresError(withCode(code), 'the database', 'db:5432')).toMatchObject({
      kind: 'unavailable',
      reason: 'STORE_UNREACHABLE',
      message: expect.not.stringContaining('db:5432'),
      cause: { message: 'The PostgreSQL server is db:5432.' },
    });
  },
);

it.each([
  ['53200', 'the PostgreSQL server is out of memory'],
  ['53300', 'the PostgreSQL server allows no more connections'],
  ['53400', 'a limit of the PostgreSQL server is exceeded'],
  ['53000', 'the PostgreSQL server has too few resources'],
])('reports SQLSTATE %s as a server without resources (SYS-3)', (code, why) => {
  expect(translatePostgresError(withCode(code), 'Schema x', 'db:5432')).toMatchObject({
    reason: 'STORE_UNREACHABLE',
    message: `Schema x is unavailable: ${why}.`,
    metadata: { sqlstate: code },
    cause: { message: 'The PostgreSQL server is db:5432.' },
  });
});

it('passes constraint violations through (SYS-4)', () => {
  const violation = withCode('23505');
  expect(endsConnection(violation)).toBe(false);
  expect(translatePostgresError(violation, 'the database', 'db:5432')).toBe(violation);
});

it('reports an unavailable database, with the error in the cause, if an open store cannot open a session (SYS-3, SYS-4)', () => {
  const translate = (error: Error) => translateSessionError(error, 'Schema x', 'db:5432');
  const rejected = withCode('28P01');
  expect(translate(rejected)).toMatchObject({
    reason: 'STORE_UNREACHABLE',
    message: 'Schema x is unavailable: no session can be opened (SQLSTATE 28P01).',
    metadata: { sqlstate: '28P01' },
    cause: { message: 'The PostgreSQL server is db:5432: write 28P01', cause: rejected },
  });
  const tooOld = new PreconditionError('STORE_POSTGRES_TOO_OLD', 'Too old.', {
    server_version: '1',
  });
  expect(translate(tooOld)).toMatchObject({
    reason: 'STORE_UNREACHABLE',
    message: 'Schema x is unavailable: no session can be opened.',
    metadata: { server_version: '1' },
    cause: { message: 'The PostgreSQL server is db:5432: Too old.' },
  });
  expect(translate(withCode('53100'))).toMatchObject({ reason: 'STORE_DISK_FULL' });
});

it('reports a corrupt database that prevents a session as corrupt (SYS-4)', () => {
  const corrupt = translateSessionError(withCode('XX001'), 'Schema x', 'db:5432');
  expect(corrupt).toMatchObject({ kind: 'data_loss', reason: 'STORE_CORRUPT' });
});

it('reports a standby server only for an SQLSTATE that a standby server returns (SYS-3)', () => {
  const standby = { message: expect.stringContaining('is on a standby server') };
  const session = (code: string) => translateSessionError(withCode(code), 'Schema x', 'db:5432');
  const begin = (code: string) => translateBeginError(withCode(code), 'Schema x', 'db:5432');
  expect(session('25006')).toMatchObject(standby);
  expect(begin('25006')).toMatchObject(standby);
  expect(begin('0A000')).toMatchObject(standby);
  // The server does not support LISTEN or a parameter of the session.
  expect(session('0A000')).toMatchObject({
    reason: 'STORE_UNREACHABLE',
    message: 'Schema x is unavailable: no session can be opened (SQLSTATE 0A000).',
  });
});
