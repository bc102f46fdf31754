import { type Client, createClient, createRouterTransport } from '@connectrpc/connect';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { OverloadedError, PreconditionError, type WritError } from '@writ/kernel';
import { expect, it } from 'vitest';
import { retryStarts } from './retry-starts.ts';

const REQUEST = { requestId: 'req-1', agent: 'worker', goal: 'Go.' };

function full(retryAfterMs: number): WritError {
  return new OverloadedError('START_QUEUE_FULL', 'Full.', {
    retry_after_ms: String(retryAfterMs),
  });
}

interface Failing {
  readonly runs: Client<typeof RunService>;
  /** Request ids of the starts. */
  readonly ids: string[];
  /** Timeouts of the starts, ms. */
  readonly timeouts: (number | undefined)[];
}

/** RunService whose starts fail with these errors, one each, and then succeed. */
function failing(...errors: WritError[]): Failing {
  const ids: string[] = [];
  const timeouts: (number | undefined)[] = [];
  const transport = createRouterTransport(({ service }) => {
    service(RunService, {
      startRun: () => ({ run: { runId: 'run-1' } }),
      async *runAgent() {
        yield { runId: 'run-1' };
      },
    });
  });
  const runs = createClient(RunService, transport);
  const failOnce = (requestId = '', timeoutMs: number | undefined): void => {
    ids.push(requestId);
    timeouts.push(timeoutMs);
    const error = errors.shift();
    if (error !== undefined) throw error;
  };
  return {
    ids,
    timeouts,
    runs: {
      ...runs,
      async startRun(request, options) {
        failOnce(request.requestId, options?.timeoutMs);
        return await runs.startRun(request, options);
      },
      async *runAgent(request, options) {
        failOnce(request.start?.requestId, options?.timeoutMs);
        yield* runs.runAgent(request, options);
      },
    },
  };
}

it('repeats a rejected start with the same request id (BD-5)', async () => {
  const { runs, ids } = failing(full(1), full(1));
  const { run } = await retryStarts(runs, 60_000).startRun(REQUEST);
  expect(run?.runId).toBe('run-1');
  expect(ids).toEqual(['req-1', 'req-1', 'req-1']);
});

it('throws a rejection whose delay ends after the timeout of the call (BD-5)', async () => {
  const rejection = full(60_000);
  const { runs, ids } = failing(rejection);
  const started = retryStarts(runs, 60_000).startRun(REQUEST);
  await expect(started).rejects.toBe(rejection);
  expect(ids).toHaveLength(1);
});

it('throws the rejection if the call is cancelled during the delay, and throws every other error (BD-5)', async () => {
  const rejection = full(10_000);
  const signal = AbortSignal.timeout(5);
  const cancelled = retryStarts(failing(rejection).runs, 60_000).startRun(REQUEST, { signal });
  await expect(cancelled).rejects.toBe(rejection);
  const halted = new PreconditionError('HALTED', 'Halted.');
  const started = retryStarts(failing(halted).runs, 60_000).startRun(REQUEST);
  await expect(started).rejects.toBe(halted);
});

it.each<[string, { readonly timeoutMs?: number }, number]>([
  ['the call', { timeoutMs: 0 }, 60_000],
  ['the client', {}, 0],
])(
  'starts and retries without a limit if the timeout of %s is 0 (BD-5)',
  async (_, options, defaultTimeoutMs) => {
    const start = failing(full(1));
    const { run } = await retryStarts(start.runs, defaultTimeoutMs).startRun(REQUEST, options);
    expect(run?.runId).toBe('run-1');
    expect(start.timeouts).toEqual([0, 0]);
    const agent = failing(full(1));
    const retried = retryStarts(agent.runs, defaultTimeoutMs);
    const messages = await Array.fromAsync(retried.runAgent({ start: REQUEST }, options));
    expect(messages).toMatchObject([{ runId: 'run-1' }]);
    expect(agent.timeouts).toEqual([options.timeoutMs, options.timeoutMs]);
  },
);
