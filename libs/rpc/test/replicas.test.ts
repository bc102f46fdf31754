import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createRpcClient } from '../src/index.ts';
import { ALLOWED, rejection, START, start } from './fixture.ts';

const telemetry = createTelemetry({ service: 'test', logLevel: 'silent' });

/** Replicas of a service that answer with their own number, and a client of all of them. */
async function replicas(count: number) {
  const servers = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      start('grpc-js', { startRun: async () => ({ run: { runId: `from-${index}` } }) }),
    ),
  );
  const client = createRpcClient(RunService, {
    telemetry,
    address: servers.map(({ address }) => address).join(', '),
  });
  onTestFinished(() => client.close());
  const call = async () => (await client.startRun(START, { ...ALLOWED, retry: true })).run?.runId;
  /** Who answers so many calls, one after the other. */
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
  it('goes round all of them, and sticks to none (SYS-5)', async () => {
    const { answers } = await replicas(3);
    await vi.waitFor(async () => expect(new Set(await answers(3)).size).toBe(3));
    const from = await answers(30);
    expect([0, 1, 2].map((index) => times(from, `from-${index}`))).toEqual([10, 10, 10]);
  });

  it('leaves out one that drains, without a call that fails (SYS-4, SYS-5)', async () => {
    const { answers, servers } = await replicas(2);
    await vi.waitFor(async () => expect(new Set(await answers(2)).size).toBe(2));
    const closing = servers[0]?.server.close();
    await answers(10);
    await closing;
    expect(times(await answers(10), 'from-1')).toBe(10);
  });

  it('leaves out one that says that it does not serve, and fails at once where all do (SYS-4, SYS-5)', async () => {
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

  it('calls those that do not serve when it asks for what they always know (SYS-5)', async () => {
    const { server, client } = await start('grpc-js', {
      startRun: async () => ({ run: { runId: 'r' } }),
    });
    server.setServing(false);
    expect(await client({ health: 'responding' }).startRun(START, ALLOWED)).toMatchObject({
      run: { runId: 'r' },
    });
  });

  it('finds every address that a name has, and passes by names that have none (SYS-5)', async () => {
    const { server } = await start('grpc-js', { startRun: async () => ({ run: { runId: 'r' } }) });
    const client = createRpcClient(RunService, {
      telemetry,
      address: `nobody.invalid:1,localhost:${server.port}`,
    });
    onTestFinished(() => client.close());
    expect(await client.startRun(START, ALLOWED)).toMatchObject({ run: { runId: 'r' } });
  });
});
