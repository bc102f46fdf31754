import { UnavailableError } from '@writ/kernel';
import { expect, it } from 'vitest';
import { createLogger } from './logger.ts';

function withLines() {
  const lines: Record<string, unknown>[] = [];
  let ms = 0;
  const stream = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const log = createLogger({ service: 'spawn-budget', stream, now: () => ms });
  return {
    lines,
    log,
    pass: (time: number) => {
      ms += time;
    },
  };
}

const unreachable = () =>
  new UnavailableError(
    'STORE_UNREACHABLE',
    'The database is unreachable.',
    {},
    { cause: new Error('The PostgreSQL server is db:5432.', { cause: new Error('refused') }) },
  );

it('logs an unreachable database once in ten seconds, with its address and without a stack (SYS-3, SYS-4)', () => {
  const { lines, log, pass } = withLines();
  for (let second = 0; second < 25; second += 1) {
    log.error({ err: unreachable(), sweep: 'expire' }, 'sweep failed');
    log.child({ run_id: 'run_1' }).warn({ err: unreachable() }, 'failed to claim agents');
    pass(1_000);
  }
  const line = {
    level: 'error',
    msg: 'sweep failed',
    sweep: 'expire',
    reason: 'STORE_UNREACHABLE',
    problem: 'The database is unreachable.',
    cause: 'The PostgreSQL server is db:5432.',
  };
  expect(lines).toHaveLength(3);
  for (const each of lines) expect(each).toMatchObject(line);
  expect(lines.map(({ suppressed }) => suppressed)).toEqual([undefined, 19, 19]);
  expect(JSON.stringify(lines)).not.toContain(' at ');
});

it('limits log lines about unavailable peers per message, and logs every other failure with its stack (SYS-3)', () => {
  const { lines, log } = withLines();
  const notServing = new UnavailableError('NOT_SERVING', 'supervisor is unavailable.');
  for (const text of ['failed to renew slots', 'failed to renew slots', 'failed to list orders'])
    log.warn({ err: notServing }, text);
  for (const code of ['a', 'b']) log.error({ err: new Error(code) }, 'sweep failed');
  log.info({ pools: 2 }, 'pools closed');
  expect(lines.map(({ msg }) => msg)).toEqual([
    'failed to renew slots',
    'failed to list orders',
    'sweep failed',
    'sweep failed',
    'pools closed',
  ]);
  expect(lines[2]).toMatchObject({ err: { stack: expect.stringContaining(' at ') } });
});
