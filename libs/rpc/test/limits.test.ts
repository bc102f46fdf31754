import { OverloadedError } from '@writ/kernel';
import { describe, expect, it, vi } from 'vitest';
import { ALLOWED, drained, rejection, START, start, TRANSPORTS } from './fixture.ts';

describe.each(TRANSPORTS)('over %s', (transport) => {
  it('rejects a request over the size limit as RESOURCE_EXHAUSTED, with details (SYS-3)', async () => {
    const limits = { maxMessageBytes: 1000 };
    const { client } = await start(transport, { startRun: async () => ({}) }, { limits });
    const caller = client();
    const error = await rejection(caller.startRun({ ...START, goal: 'x'.repeat(1001) }, ALLOWED));
    expect(error).toBeInstanceOf(OverloadedError);
    expect(error).toMatchObject({ reason: 'MESSAGE_TOO_LARGE' });
    expect((error as Error).message).toContain('1000');
    await caller.startRun({ ...START, goal: 'x'.repeat(900) }, ALLOWED);
  });

  it('rejects a response over the size limit as RESOURCE_EXHAUSTED, unary or streaming (SYS-3)', async () => {
    const runId = 'x'.repeat(1001);
    const { client } = await start(
      transport,
      {
        startRun: async () => ({ run: { runId } }),
        async *runAgent() {
          yield { runId: 'short' };
          yield { runId };
        },
      },
      { limits: { maxMessageBytes: 1000 } },
    );
    const caller = client();
    const expected = { reason: 'MESSAGE_TOO_LARGE', message: expect.stringContaining('1000') };
    expect(await rejection(caller.startRun(START, ALLOWED))).toMatchObject(expected);
    const { got, error } = await drained(caller.runAgent({ start: START }, ALLOWED));
    expect(got).toHaveLength(1);
    expect(error).toMatchObject(expected);
  });

  it('rejects a call over the limit of calls in flight, and accepts later ones (SYS-3)', async () => {
    const begun = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const { client } = await start(
      transport,
      {
        startRun: async () => {
          begun.resolve();
          await release.promise;
          return {};
        },
      },
      { limits: { maxConcurrentCalls: 1 } },
    );
    const caller = client();
    const first = caller.startRun(START, ALLOWED);
    await begun.promise;
    expect(await rejection(caller.startRun(START, ALLOWED))).toMatchObject({
      kind: 'resource_exhausted',
      reason: 'TOO_MANY_CALLS',
      metadata: { limit: '1' },
    });
    release.resolve();
    await expect(first).resolves.toBeDefined();
    await expect(caller.startRun(START, ALLOWED)).resolves.toBeDefined();
  });

  it('keeps the connection usable when thousands of calls are cancelled at once (SUP-8)', async () => {
    let open = 0;
    const { client } = await start(
      transport,
      {
        startRun: async ({ requestId }, { signal }) => {
          if (requestId === 'last') return {};
          open += 1;
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          open -= 1;
          throw signal.reason;
        },
      },
      { limits: { maxConcurrentStreams: 3000 } },
    );
    const caller = client();
    const stop = new AbortController();
    const options = { ...ALLOWED, signal: stop.signal };
    const calls = Array.from({ length: 1200 }, () => rejection(caller.startRun(START, options)));
    while (open < calls.length) await new Promise(setImmediate);
    const bystander = caller.startRun({ ...START, requestId: 'last' }, ALLOWED);
    stop.abort();
    const failures = await Promise.all(calls);
    expect(failures).toEqual(calls.map(() => expect.objectContaining({ kind: 'cancelled' })));
    await expect(bystander).resolves.toBeDefined();
    await vi.waitFor(() => expect(open).toBe(0));
    const afterwards = caller.startRun({ ...START, requestId: 'last' }, ALLOWED);
    await expect(afterwards).resolves.toBeDefined();
  });
});
