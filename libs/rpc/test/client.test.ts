import { connect, createServer, type Socket } from 'node:net';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { ConflictError, DeadlineError, UnavailableError } from '@writ/kernel';
import { createTelemetry, InMemorySpans } from '@writ/telemetry';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createRpcClient } from '../src/index.ts';
import { ALLOWED, clientOf, gate, rejection, START, start } from './fixture.ts';

const spans = new InMemorySpans();
const telemetry = createTelemetry({
  service: 'test',
  logLevel: 'silent',
  spanProcessors: [spans],
});

const QUICK = { initialDelayMs: 1 };

describe('a client', () => {
  it('resolves the address at the first call, and again until it succeeds', async () => {
    const { address } = await start('grpc-js', { startRun: async () => ({}) });
    let known: string | undefined;
    let lookups = 0;
    const client = createRpcClient(RunService, {
      telemetry,
      address: () => {
        lookups += 1;
        if (known === undefined) throw new UnavailableError('UNAVAILABLE', 'Not known yet.');
        return known;
      },
    });
    onTestFinished(() => client.close());
    expect(lookups).toBe(0);
    expect(await rejection(client.startRun(START))).toMatchObject({ reason: 'UNAVAILABLE' });
    known = address;
    await client.startRun(START, ALLOWED);
    const lookupsBefore = lookups;
    await client.startRun(START, ALLOWED);
    expect(lookups).toBe(lookupsBefore);
  });

  it('reports a bug in the address function as an internal error (SYS-3)', async () => {
    const client = createRpcClient(RunService, {
      telemetry,
      address: () => {
        throw new TypeError('A bug.');
      },
    });
    spans.clear();
    expect(await rejection(client.startRun(START))).toMatchObject({ kind: 'internal' });
    expect(spans.spans()).toMatchObject([{ kind: 'client', status: { code: 'error' } }]);
  });

  it('sends credentials and epoch in their metadata keys (SUP-5, RT-2)', async () => {
    const seen: Record<string, string | undefined> = {};
    const { client } = await start(
      'grpc-js',
      { startRun: async () => ({}) },
      {
        gate: async (call) => {
          for (const key of [
            'authorization',
            'writ-agent-token',
            'writ-slot-grant',
            'writ-epoch',
          ]) {
            seen[key] = call.header(key);
          }
          return {};
        },
      },
    );
    let issued = 0;
    const caller = client({
      serviceToken: async () => {
        issued += 1;
        return `token-${issued}`;
      },
    });
    const credentials = { agentToken: 'agent', slotGrant: 'grant', epoch: 12n };
    await caller.startRun(START, credentials);
    await caller.startRun(START, credentials);
    expect(seen).toEqual({
      authorization: 'Bearer token-2',
      'writ-agent-token': 'agent',
      'writ-slot-grant': 'grant',
      'writ-epoch': '12',
    });
  });

  it('does not quote a credential that is not a valid header value', async () => {
    const { client } = await start('grpc-js', {});
    const error = await rejection(client().startRun(START, { agentToken: 'hunter2\u0000' }));
    expect(error).toMatchObject({
      reason: 'INVALID_HEADER',
      metadata: { metadata_key: 'writ-agent-token' },
    });
    expect(JSON.stringify([error, String(error)])).not.toContain('hunter2');
  });

  it('names the method of a request that cannot be encoded (SYS-3)', async () => {
    const { client } = await start('grpc-js', {});
    const request = { pageSize: -1 };
    const error = await rejection(client().listRuns(request, ALLOWED));
    expect(error).toMatchObject({ kind: 'invalid_argument', reason: 'INVALID_REQUEST_MESSAGE' });
    expect((error as Error).message).toContain('page_size');
  });

  it('sends a deadline with every unary call, ten seconds by default (SUP-5)', async () => {
    const left: number[] = [];
    const { client } = await start('grpc-js', {
      startRun: async (_request, { remainingMs }) => {
        left.push(remainingMs);
        return {};
      },
    });
    await client().startRun(START, ALLOWED);
    await client({ timeoutMs: 3000 }).startRun(START, ALLOWED);
    await client().startRun(START, { ...ALLOWED, timeoutMs: 2000 });
    // Longer than any timer; grpc-js would treat the deadline as passed.
    await client().startRun(START, { ...ALLOWED, timeoutMs: 1e12 });
    for (const [index, limit] of [10_000, 3000, 2000, 60_000].entries()) {
      expect(left[index]).toBeLessThanOrEqual(limit);
      expect(left[index]).toBeGreaterThan(limit - 1000);
    }
    const spent = await rejection(client().startRun(START, { ...ALLOWED, timeoutMs: 0 }));
    expect(spent).toBeInstanceOf(DeadlineError);
  });

  it('times out on a peer that accepts connections and does not respond (SYS-4)', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      silent.close();
    });
    const address = silent.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const client = clientOf(`127.0.0.1:${port}`, telemetry, { timeoutMs: 50 });
    expect(await rejection(client.startRun(START))).toMatchObject({
      kind: 'deadline_exceeded',
      metadata: { method: 'writ.run.v1.RunService/StartRun' },
    });
  });

  it('reports a connection that breaks during a call as UNAVAILABLE (SYS-3)', async () => {
    const begun = Promise.withResolvers<void>();
    const { server, telemetry: own } = await start('grpc-js', {
      startRun: () => {
        begun.resolve();
        return new Promise(() => undefined);
      },
    });
    const pipes: Socket[] = [];
    const proxy = createServer((near) => {
      const far = connect(server.port, '127.0.0.1');
      pipes.push(near, far);
      near.pipe(far).pipe(near);
      near.on('error', () => far.destroy());
      far.on('error', () => near.destroy());
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void proxy.close());
    const address = proxy.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const called = rejection(clientOf(`127.0.0.1:${port}`, own).startRun(START, ALLOWED));
    await begun.promise;
    for (const socket of pipes) socket.resetAndDestroy();
    expect(await called).toBeInstanceOf(UnavailableError);
  });

  it('fails calls after close with CLIENT_CLOSED (SYS-3)', async () => {
    const { client } = await start('grpc-js', {});
    const caller = client();
    caller.close();
    caller.close();
    expect(await rejection(caller.startRun(START))).toMatchObject({ reason: 'CLIENT_CLOSED' });
  });

  it('does not retry a call after close (SYS-3)', async () => {
    const { client } = await start('grpc-js', {});
    const caller = client({ telemetry, retry: QUICK });
    caller.close();
    spans.clear();
    const error = await rejection(caller.startRun(START, { retry: true }));
    expect(error).toMatchObject({ reason: 'CLIENT_CLOSED' });
    expect(spans.spans().map(({ events }) => events.map(({ name }) => name))).toEqual([
      ['exception'],
    ]);
  });
});

describe('a call that fails with a transient error', () => {
  const failing = (failures: number, error: Error) => {
    const counter = { calls: 0 };
    const startRun = async () => {
      counter.calls += 1;
      if (counter.calls <= failures) throw error;
      return { run: { runId: `${counter.calls}` } };
    };
    return { counter, startRun };
  };
  const unavailable = new UnavailableError('UNAVAILABLE', 'Unavailable.');
  const raced = new ConflictError('STORE_CONFLICT', 'Another call was first.');

  it('is retried when it is idempotent, in one span with an event per retry', async () => {
    const { counter, startRun } = failing(3, unavailable);
    const { client } = await start('grpc-js', { startRun });
    spans.clear();
    const caller = client({ retry: QUICK, telemetry });
    const { run } = await caller.startRun(START, { ...ALLOWED, retry: true });
    expect(run?.runId).toBe('4');
    expect(counter.calls).toBe(4);
    expect(spans.spans()).toHaveLength(1);
    expect(spans.spans()[0]?.events).toMatchObject(
      Array(3).fill({ name: 'retry', attributes: { 'error.type': 'UNAVAILABLE' } }),
    );
  });

  it('is not retried unless it is declared idempotent', async () => {
    const { counter, startRun } = failing(1, unavailable);
    const { client } = await start('grpc-js', { startRun });
    const error = await rejection(client({ retry: QUICK }).startRun(START, ALLOWED));
    expect(error).toMatchObject({ reason: 'UNAVAILABLE' });
    expect(counter.calls).toBe(1);
  });

  it('is retried after ABORTED only when the call allows it', async () => {
    const { counter, startRun } = failing(1, raced);
    const { client } = await start('grpc-js', { startRun });
    const caller = client({ retry: QUICK });
    const error = await rejection(caller.startRun(START, { ...ALLOWED, retry: true }));
    expect(error).toMatchObject({ reason: 'STORE_CONFLICT' });
    counter.calls = 0;
    await caller.startRun(START, { ...ALLOWED, retry: true, retryAborted: true });
    expect(counter.calls).toBe(2);
  });

  it('fails after the last attempt, or when the next delay would pass the deadline', async () => {
    const { counter, startRun } = failing(Infinity, unavailable);
    const { client } = await start('grpc-js', { startRun });
    const idempotent = { ...ALLOWED, retry: true };
    const thrice = client({ retry: { ...QUICK, maxAttempts: 3 } });
    expect(await rejection(thrice.startRun(START, idempotent))).toMatchObject({
      reason: 'UNAVAILABLE',
    });
    expect(counter.calls).toBe(3);
    spans.clear();
    const slow = client({ retry: { initialDelayMs: 1e9, maxDelayMs: 1e9 }, telemetry });
    const before = performance.now();
    const error = await rejection(slow.startRun(START, { ...idempotent, timeoutMs: 30_000 }));
    expect(error).toMatchObject({ reason: 'UNAVAILABLE' });
    expect(performance.now() - before).toBeLessThan(30_000);
    expect(spans.spans().map(({ events }) => events.map(({ name }) => name))).toEqual([
      ['exception'],
    ]);
  });

  it('is not retried once it is cancelled', async () => {
    const { counter, startRun } = failing(Infinity, unavailable);
    const { client } = await start('grpc-js', { startRun });
    const stop = new AbortController();
    const patient = client({ retry: { initialDelayMs: 1e9, maxDelayMs: 1e9 } });
    // The deadline is later than any retry delay.
    const options = { ...ALLOWED, retry: true, signal: stop.signal, timeoutMs: 2e9 };
    const called = rejection(patient.startRun(START, options));
    await expect.poll(() => counter.calls).toBe(1);
    stop.abort('enough');
    expect(await called).toMatchObject({ kind: 'cancelled', cancelReason: 'enough' });
    expect(counter.calls).toBe(1);
  });

  it('reaches a peer that restarts at the same address', async () => {
    const first = await start('grpc-js', { startRun: async () => ({ run: { runId: 'one' } }) });
    const caller = clientOf(first.address, telemetry);
    await caller.startRun(START, ALLOWED);
    await first.server.close(0);
    const { port } = first.server;
    const called = caller.startRun(START, { ...ALLOWED, retry: true });
    await start('grpc-js', { startRun: async () => ({ run: { runId: 'two' } }) }, { port, gate });
    expect((await called).run?.runId).toBe('two');
  });
});
