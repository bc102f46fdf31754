import { describe, expect, it } from 'vitest';
import { requirePerson } from '../src/index.ts';
import { ALLOWED, drained, rejection, START, start, TRANSPORTS } from './fixture.ts';

describe.each(TRANSPORTS)('over %s', (transport) => {
  it('handles a unary call (SYS-2)', async () => {
    const { client } = await start(transport, {
      startRun: async ({ goal }, call) => ({
        run: { runId: `${goal} ${requirePerson(call).tenant}` },
      }),
    });
    const { run } = await client().startRun(START, ALLOWED);
    expect(run?.runId).toBe('Refund it. acme');
  });

  it('streams every message in order (SYS-2)', async () => {
    const { client } = await start(transport, {
      async *watchRun({ afterSequence }) {
        for (let n = afterSequence + 1n; n <= 500n; n += 1n) yield { event: { sequence: n } };
      },
    });
    const stream = client().watchRun({ runId: 'run-1', afterSequence: 3n }, ALLOWED);
    const { got, error } = await drained(stream);
    expect(error).toBeUndefined();
    expect(got.map(({ event }) => event?.sequence)).toEqual(
      Array.from({ length: 497 }, (_, n) => BigInt(n + 4)),
    );
  });

  it('passes caller, headers, epoch and deadline to the handler (SUP-5)', async () => {
    let seen: unknown;
    const { client, lines } = await start(transport, {
      startRun: async (_request, call) => {
        call.log.info('Handling.');
        seen = {
          method: call.method.name,
          caller: call.caller,
          header: call.header('X-Colour'),
          absent: call.header('x-absent'),
          left: call.remainingMs,
        };
        return {};
      },
    });
    const headers = { ...ALLOWED.headers, 'x-colour': 'green' };
    await client().startRun(START, { headers, epoch: 7n, timeoutMs: 5000 });
    expect(seen).toMatchObject({
      method: 'StartRun',
      caller: { person: { subject: 'ann' }, epoch: 7n },
      header: 'green',
      absent: undefined,
    });
    expect((seen as { left: number }).left).toBeGreaterThan(4000);
    expect((seen as { left: number }).left).toBeLessThanOrEqual(5000);
    expect(lines().find(({ msg }) => msg === 'Handling.')).toMatchObject({
      rpc: 'StartRun',
      tenant: 'acme',
      trace_id: expect.any(String),
    });
  });

  it('logs ids, code and duration of every call, and none of its content (SYS-1)', async () => {
    const { client, lines } = await start(transport, { startRun: async () => ({}) });
    await client().startRun({ ...START, goal: 'swordfish' }, ALLOWED);
    await rejection(client().startRun({ ...START, agent: 'SWORDFISH' }, ALLOWED));
    expect(lines()).toMatchObject([
      { level: 'debug', rpc: 'writ.run.v1.RunService/StartRun', code: 'OK', tenant: 'acme' },
      { level: 'debug', code: 'INVALID_ARGUMENT', reason: 'INVALID_FIELD', tenant: 'acme' },
    ]);
    expect(lines()[0]?.duration_ms).toEqual(expect.any(Number));
    expect(JSON.stringify(lines()).toLowerCase()).not.toContain('swordfish');
  });
});
