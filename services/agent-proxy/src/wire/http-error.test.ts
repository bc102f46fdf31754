import {
  DeadlineError,
  NotFoundError,
  OverloadedError,
  PreconditionError,
  UnauthenticatedError,
  UnavailableError,
  type WritError,
} from '@writ/kernel';
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

it.each<[WritError, number]>([
  [new PreconditionError('HALTED', 'The run is halted.'), 403],
  [new OverloadedError('BUDGET_EXHAUSTED', 'No budget is left.'), 402],
  [new OverloadedError('BUDGET_EXHAUSTED', 'No budget is left.', { level: 'tenant_day' }), 429],
  [new OverloadedError('OPEN_RUNS_LIMIT', 'This agent key has 10 open runs.'), 429],
  [new PreconditionError('PROVIDER_ERROR', 'The provider failed.'), 502],
  [new NotFoundError('UNKNOWN_MODEL', 'The model does not exist.'), 404],
  [new DeadlineError('LLM_TIMEOUT', 'The provider did not answer.'), 504],
])('sends status 400 to Codex for the final error $reason (AP-2)', (error, status) => {
  expect(httpErrorOf(error).status).toBe(status);
  expect(httpErrorOf(error, 'codex_cli_rs/0.169.0 (Linux)').status).toBe(400);
});

it.each<[WritError, number]>([
  [new UnavailableError('STORE_UNREACHABLE', 'The database does not answer.'), 503],
  // Codex can obtain a new token.
  [new UnauthenticatedError('TOKEN_EXPIRED', 'The token has expired.'), 401],
])(
  'sends Codex the status of the error $reason, after which a repeat can succeed (AP-2)',
  (error, status) => {
    expect(httpErrorOf(error, 'codex_cli_rs/0.169.0 (Linux)').status).toBe(status);
  },
);
