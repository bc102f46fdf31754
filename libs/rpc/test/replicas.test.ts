import { promises as dns } from 'node:dns';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createRpcClient } from '../src/index.ts';
import { ALLOWED, rejection, START, start } from './fixture.ts';

const telemetry = createTelemetry({ service: 'test', logLevel: 'silent' });

/**
 * Starts replicas that respond with their number, and a client of all of them, which addresses them by `names` if
 * given.
 */
async function replicas(count: number, names: readonly string[] = []) {
  const servers = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      start('grpc-js', { startRun: async () => ({ run: { runId: `from-${index}` } }) }),
    ),
  );
  const client = createRpcClient(RunService, {
    telemetry,
    address: servers
      .map(({ address, server }, index) =>
        names[index] === undefined ? address : `${names[index]}:${server.port}`,
      )
      .join(', '),
  });
  onTestFinished(() => client.close());
  const call = async () => (await client.startRun(START, { ...ALLOWED, retry: true })).run?.runId;
  /** Makes `calls` sequential calls and returns the replicas that responded. */
  const answers = async (calls: number) => {
    const from: (string | undefined)[] = [];
    for (let each = 0; each < calls; each += 1) from.push(await call());
    return from;
  };
  return { servers, answers };
}

const times = (answers: readonly unknown[], from: string) =>
  answers.filter((answer) => answer === from).length;

describe('a client of a service with several replicas', () => {
  it('balances calls round robin (SYS-5)', async () => {
    const { answers } = await replicas(3);
    await vi.waitFor(async () => expect(new Set(await answers(3)).size).toBe(3));
    const from = await answers(30);
    expect([0, 1, 2].map((index) => times(from, `from-${index}`))).toEqual([10, 10, 10]);
  });

  it('ejects a draining replica without a failed call (SYS-4, SYS-5)', async () => {
    const { answers, servers } = await replicas(2);
    await vi.waitFor(async () => expect(new Set(await answers(2)).size).toBe(2));
    const closing = servers[0]?.server.close();
    await answers(10);
    await closing;
    expect(times(await answers(10), 'from-1')).toBe(10);
  });

  it('ejects a replica that reports NOT_SERVING, and fails at once when all do (SYS-4, SYS-5)', async () => {
    const { answers, servers } = await replicas(2);
    await vi.waitFor(async () => expect(new Set(await answers(2)).size).toBe(2));
    servers[0]?.server.setServing(false);
    await vi.waitFor(async () => expect(times(await answers(10), 'from-1')).toBe(10));
    servers[1]?.server.setServing(false);
    await vi.waitFor(async () => {
      const failure = await rejection(answers(1));
      expect(failure).toMatchObject({ kind: 'unavailable' });
      expect(String(failure)).toContain('reports NOT_SERVING');
    });
    for (const { server } of servers) server.setServing(true);
    await vi.waitFor(async () => expect(new Set(await answers(2)).size).toBe(2));
  });

  it('calls replicas that report NOT_SERVING with health `responding` (SYS-5)', async () => {
    const { server, client } = await start('grpc-js', {
      startRun: async () => ({ run: { runId: 'r' } }),
    });
    server.setServing(false);
    expect(await client({ health: 'responding' }).startRun(START, ALLOWED)).toMatchObject({
      run: { runId: 'r' },
    });
  });

  it('resolves every address of a name and ignores unresolvable names (SYS-5)', async () => {
    const { server } = await start('grpc-js', { startRun: async () => ({ run: { runId: 'r' } }) });
    const client = createRpcClient(RunService, {
      telemetry,
      address: `unknown.invalid:1,localhost:${server.port}`,
    });
    onTestFinished(() => client.close());
    expect(await client.startRun(START, ALLOWED)).toMatchObject({ run: { runId: 'r' } });
  });

  it('keeps the replicas of a name whose lookup fails later (SYS-4, SYS-5)', async () => {
    const failing = new Set<string>();
    const lookup = vi.spyOn(dns, 'lookup').mockImplementation(async (host) => {
      if (failing.has(host)) throw new Error(`getaddrinfo EAI_AGAIN ${host}`);
      return [{ address: '127.0.0.1', family: 4 }] as never;
    });
    const names = ['a.test', 'b.test', 'c.test'];
    const { answers, servers } = await replicas(3, names);
    await vi.waitFor(async () => expect(new Set(await answers(3)).size).toBe(3));
    failing.add('b.test');
    lookup.mockClear();
    // A lost connection makes the client look the names up again.
    await servers[2]?.server.close(0);
    await vi.waitFor(() => expect(lookup).toHaveBeenCalledTimes(3));
    await Promise.allSettled(lookup.mock.results.map(({ value }) => value));
    await vi.waitFor(async () => expect(times(await answers(10), 'from-2')).toBe(0));
    expect(times(await answers(10), 'from-1')).toBe(5);
  });
});
