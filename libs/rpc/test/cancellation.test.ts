import { randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { CancellationError, DeadlineError } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import type { CallContext } from '../src/index.ts';
import { ALLOWED, KEY, rejection, START, start, TRANSPORTS } from './fixture.ts';

/**
 * Number of calls on the same connection after which a stream handler that has sent no further message counts as
 * blocked by flow control.
 */
const ROUND_TRIPS = 20;

/** Never settles. */
const forever = (): Promise<never> => new Promise(() => undefined);

/** Resolves with the reason of `signal` when it aborts. */
const aborted = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    signal.addEventListener('abort', () => resolve(signal.reason));
  });

describe.each(TRANSPORTS)('over %s', (transport) => {
  it('aborts the handler of a cancelled call and throws the reason of the signal (SUP-5)', async () => {
    const begun = Promise.withResolvers<CallContext>();
    const { client } = await start(transport, {
      startRun: (_request, call) => {
        begun.resolve(call);
        return forever();
      },
    });
    const stop = new AbortController();
    const called = rejection(client().startRun(START, { ...ALLOWED, signal: stop.signal }));
    const { signal } = await begun.promise;
    expect(signal.aborted).toBe(false);
    const reason = new CancellationError('enough of it');
    stop.abort(reason);
    expect(await called).toBe(reason);
    expect(await aborted(signal)).toBeInstanceOf(CancellationError);
  });

  it('aborts the signal and runs the finally blocks of an abandoned stream (SUP-5)', async () => {
    const left = Promise.withResolvers<unknown>();
    const { client } = await start(transport, {
      async *watchRun(_request, { signal }) {
        try {
          yield { event: { sequence: 1n } };
          await aborted(signal);
        } finally {
          left.resolve(signal.reason);
        }
      },
    });
    for await (const _ of client().watchRun({ runId: 'run-1' }, ALLOWED)) break;
    expect(await left.promise).toBeInstanceOf(CancellationError);
  });

  it('does not start a call whose signal has already aborted (SUP-5)', async () => {
    let calls = 0;
    const { client } = await start(transport, {
      startRun: async () => {
        calls += 1;
        return {};
      },
    });
    const options = { ...ALLOWED, signal: AbortSignal.abort('never mind') };
    const expected = { kind: 'cancelled', cancelReason: 'never mind' };
    expect(await rejection(client().startRun(START, options))).toMatchObject(expected);
    const stream = client().watchRun({ runId: 'run-1' }, options);
    expect(await rejection(Array.fromAsync(stream))).toMatchObject(expected);
    expect(calls).toBe(0);
  });

  it('cancels a call whose signal aborts while the call starts (SUP-5)', async () => {
    const { client } = await start(transport, {
      startRun: forever,
      async *watchRun() {
        yield await forever();
      },
    });
    const caller = client();
    const reason = new CancellationError('enough of it');
    const abortedDuring = async (call: (signal: AbortSignal) => Promise<unknown>) => {
      const stop = new AbortController();
      const called = rejection(call(stop.signal));
      stop.abort(reason);
      return await called;
    };
    const options = { ...ALLOWED, timeoutMs: 5_000 };
    const unary = (signal: AbortSignal) => caller.startRun(START, { ...options, signal });
    const stream = (signal: AbortSignal) =>
      Array.fromAsync(caller.watchRun({ runId: 'run-1' }, { ...options, signal }));
    expect(await abortedDuring(unary)).toBe(reason);
    expect(await abortedDuring(stream)).toBe(reason);
  });

  it('releases a handler blocked by flow control when the client cancels (SUP-5)', async () => {
    const left = Promise.withResolvers<bigint>();
    let count = 0n;
    const { client } = await start(transport, {
      startRun: async () => ({}),
      async *watchRun() {
        const detail = randomBytes(50_000).toString('hex');
        try {
          for (;;) {
            count += 1n;
            yield { event: { sequence: count, agent: { name: detail } } };
          }
        } finally {
          left.resolve(count);
        }
      },
    });
    const stop = new AbortController();
    const options = { ...ALLOWED, signal: stop.signal };
    const caller = client();
    const stream = caller.watchRun({ runId: 'run-1' }, options)[Symbol.asyncIterator]();
    await stream.next();
    // Without reads, the flow-control window of the stream fills up: the handler sends nothing while other calls are
    // answered on the same connection.
    for (let seen = -1n; seen < count; ) {
      seen = count;
      for (let time = 0; time < ROUND_TRIPS; time += 1) await caller.startRun(START, ALLOWED);
    }
    stop.abort();
    expect(await left.promise).toBeLessThanOrEqual(count + 1n);
  });

  it('passes the deadline to the handler and aborts the signal when the deadline expires (SUP-5)', async () => {
    const seen = Promise.withResolvers<CallContext>();
    const { client } = await start(transport, {
      startRun: async (_request, call) => {
        seen.resolve(call);
        await aborted(call.signal);
        throw call.signal.reason;
      },
    });
    const called = rejection(client().startRun(START, { ...ALLOWED, timeoutMs: 2_000 }));
    const { signal, remainingMs } = await seen.promise;
    expect(remainingMs).toBeLessThanOrEqual(2_030);
    expect(await called).toBeInstanceOf(DeadlineError);
    // The client times out at the same moment, so either reason may come first.
    const reason = await aborted(signal);
    expect(reason instanceof DeadlineError || reason instanceof CancellationError).toBe(true);
  });

  it('caps the deadline of a unary call, but not of a stream (SUP-5)', async () => {
    const left: number[] = [];
    const { client } = await start(
      transport,
      {
        startRun: (_request, { remainingMs }) => {
          left.push(remainingMs);
          return forever();
        },
        async *watchRun(_request, { remainingMs }) {
          left.push(remainingMs);
          yield {};
        },
      },
      { limits: { maxUnaryMs: 30 } },
    );
    const error = await rejection(client().startRun(START, { ...ALLOWED, timeoutMs: 60_000 }));
    expect(error).toMatchObject({
      kind: 'deadline_exceeded',
      message: 'writ.run.v1.RunService/StartRun did not complete within 30 ms.',
    });
    await Array.fromAsync(client().watchRun({ runId: 'run-1' }, ALLOWED));
    expect(left).toEqual([expect.any(Number), Infinity]);
    expect(left[0]).toBeLessThanOrEqual(30);
  });

  it('applies the deadline to a gate that hangs (SYS-4)', async () => {
    const { client } = await start(transport, {}, { gate: forever, limits: { maxUnaryMs: 30 } });
    expect(await rejection(client().startRun(START))).toBeInstanceOf(DeadlineError);
  });
});

it('aborts the handler when a browser closes its HTTP/1.1 connection (SUP-5)', async () => {
  const begun = Promise.withResolvers<AbortSignal>();
  const { server, lines } = await start('edge', {
    startRun: (_request, { signal }) => {
      begun.resolve(signal);
      return forever();
    },
  });
  const request = httpRequest({
    port: server.port,
    path: '/writ.run.v1.RunService/StartRun',
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
  });
  const failed = new Promise((resolve) => request.once('error', resolve));
  request.end(JSON.stringify(START));
  const signal = await begun.promise;
  request.destroy();
  expect(await aborted(signal)).toBeInstanceOf(CancellationError);
  await failed;
  await expect.poll(lines).toMatchObject([{ code: 'CANCELLED' }]);
});
