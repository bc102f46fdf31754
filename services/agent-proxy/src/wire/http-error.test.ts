import { OverloadedError, UnavailableError } from '@writ/kernel';
import { expect, it } from 'vitest';
import { httpErrorOf } from './http-error.ts';
import { mcpErrorOf } from './mcp-error.ts';

const retryAfter = (error: Error) => ({
  model: httpErrorOf(error).headers['retry-after'],
  mcp: mcpErrorOf(error, 'https://a.example').headers['retry-after'],
});

it('sends Retry-After for errors that clients should retry, but not for OPEN_RUNS_LIMIT (AP-2, AP-3)', () => {
  const full = new OverloadedError('STORE_QUEUE_FULL', 'More than 1000 transactions are waiting.');
  expect(httpErrorOf(full).status).toBe(429);
  expect(retryAfter(full)).toEqual({ model: '1', mcp: '1' });
  const busy = { retry_after_ms: '2500' };
  const slow = new OverloadedError('TOO_MANY_REQUESTS', 'The agent has 64 requests.', busy);
  expect(retryAfter(slow)).toEqual({ model: '3', mcp: '3' });
  const unreachable = new UnavailableError('STORE_UNREACHABLE', 'The database does not answer.');
  expect(retryAfter(unreachable)).toEqual({ model: '1', mcp: '1' });
  const runs = new OverloadedError('OPEN_RUNS_LIMIT', 'This agent key has 10 open runs.');
  expect(httpErrorOf(runs).headers).toEqual({ 'x-should-retry': 'false' });
});
