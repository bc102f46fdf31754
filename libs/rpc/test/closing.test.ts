import { createServer } from 'node:net';
import { UnavailableError } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { createEdge } from '../src/edge/index.ts';
import { createRpcServer, endless } from '../src/index.ts';
import {
  ALLOWED,
  clientOf,
  drained,
  gate,
  rejection,
  START,
  start,
  TRANSPORTS,
} from './fixture.ts';

describe.each(TRANSPORTS)('closing %s', (transport) => {
  it('finishes calls in flight and rejects new ones (SYS-5)', async () => {
    const begun = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const { server, client, address, telemetry } = await start(transport, {
      startRun: async () => {
        begun.resolve();
        await release.promise;
        return { run: { runId: 'run-1' } };
      },
    });
    const called = client().startRun(START, ALLOWED);
    await begun.promise;
    const closed = server.close(5000);
    expect(server.close()).toBe(closed);
    const refused = await rejection(clientOf(address, telemetry).startRun(START, ALLOWED));
    expect(refused).toBeInstanceOf(UnavailableError);
    release.resolve();
    expect((await called).run?.runId).toBe('run-1');
    await closed;
  });

  it('aborts calls that hang after the grace period with UNAVAILABLE (SYS-5)', async () => {
    const begun = Promise.withResolvers<AbortSignal>();
    const { server, client } = await start(transport, {
      startRun: (_request, { signal }) => {
        begun.resolve(signal);
        return new Promise(() => undefined);
      },
    });
    const called = rejection(client().startRun(START, ALLOWED));
    const signal = await begun.promise;
    await server.close(20);
    expect(await called).toMatchObject({ kind: 'unavailable', reason: 'DRAINING' });
    expect(signal.reason).toMatchObject({ reason: 'DRAINING' });
  });

  it('ends endless streams at once and waits for the other calls (SYS-5)', async () => {
    const release = Promise.withResolvers<void>();
    const { server, client } = await start(transport, {
      watchRun: endless(async function* () {
        yield { event: { sequence: 1n } };
        await new Promise(() => undefined);
      }),
      async *runAgent() {
        yield { runId: 'run-1' };
        await release.promise;
        yield { runId: 'run-1' };
      },
    });
    const caller = client();
    const watch = caller.watchRun({ runId: 'run-1' }, ALLOWED)[Symbol.asyncIterator]();
    const run = caller.runAgent({ start: START }, ALLOWED)[Symbol.asyncIterator]();
    await watch.next();
    await run.next();
    const closed = server.close(5000);
    expect(await rejection(watch.next())).toMatchObject({ reason: 'DRAINING' });
    release.resolve();
    expect((await run.next()).value).toMatchObject({ runId: 'run-1' });
    expect((await run.next()).done).toBe(true);
    await closed;
  });

  it('does not wait for idle connections (SYS-5)', async () => {
    const { server, client } = await start(transport, { startRun: async () => ({}) });
    const caller = client();
    await caller.startRun(START, ALLOWED);
    const before = performance.now();
    await server.close(60_000);
    expect(performance.now() - before).toBeLessThan(30_000);
    expect((await drained(caller.watchRun({ runId: 'a' }, ALLOWED))).error).toMatchObject({
      kind: 'unavailable',
    });
  });

  it('names a port in use and the setting that changes it (SYS-3)', async () => {
    const occupant = createServer();
    await new Promise<void>((resolve) => occupant.listen(0, '127.0.0.1', resolve));
    const address = occupant.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    const { telemetry } = await start(transport, {});
    const create = transport === 'edge' ? createEdge : createRpcServer;
    const host = '127.0.0.1';
    const portSetting = 'WRIT_TEST_PORT';
    const error = await rejection(create({ host, port, portSetting, routes: [], gate, telemetry }));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error).toMatchObject({
      reason: 'PORT_IN_USE',
      message: `Port ${port} on 127.0.0.1 is in use; stop the process that listens there, or set WRIT_TEST_PORT to another port.`,
      metadata: { port: String(port) },
    });
    await new Promise((resolve) => occupant.close(resolve));
    const unassigned = { host: '192.0.2.1', port: 0, routes: [], gate, telemetry };
    const bound = create({ ...unassigned, cleartext: 'anywhere' });
    expect(await rejection(bound)).toMatchObject({ reason: 'LISTEN_FAILED' });
  });
});
