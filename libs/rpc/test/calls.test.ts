import { describe, expect, it } from 'vitest';
import { ALLOWED, drained, START, start, TRANSPORTS } from './fixture.ts';

describe.each(TRANSPORTS)('over %s', (transport) => {
  it('a unary call is answered (SYS-2)', async () => {
    const { client } = await start(transport, {
      startRun: async ({ goal }, call) => ({
        run: { runId: `${goal} ${call.caller.person?.tenant}` },
      }),
    });
    const { run } = await client().startRun(START, ALLOWED);
    expect(run?.runId).toBe('Refund it. acme');
  });

  it('a stream gives every message in order (SYS-2)', async () => {
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
});
