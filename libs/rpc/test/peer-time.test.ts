import { ManualClock, NotFoundError } from '@writ/kernel';
import { expect, it } from 'vitest';
import { ALLOWED, drained, KEY, rejection, START, start } from './fixture.ts';

/**
 * Starts a server with this clock. Returns the times that the client received and the times that the server received.
 */
async function timed(clock: ManualClock) {
  const received: (string | undefined)[] = [];
  const learned: number[] = [];
  const { client } = await start(
    'grpc-js',
    {
      startRun: async (_request, call) => {
        received.push(call.header('writ-time'));
        return {};
      },
      getRun: async () => {
        throw new NotFoundError('RUN_NOT_FOUND', 'There is no such run.');
      },
      async *watchRun() {
        yield { event: { sequence: 1n } };
      },
    },
    { clock },
  );
  return { received, learned, client, onPeerTime: (timeMs: number) => void learned.push(timeMs) };
}

it('responses, errors and streams over a connection contain the time of the server (BD-3)', async () => {
  const clock = new ManualClock();
  const { client, learned, onPeerTime } = await timed(clock);
  const calls = client({ onPeerTime });
  await calls.startRun(START, ALLOWED);
  await rejection(calls.getRun({ runId: 'run-1' }, ALLOWED));
  await drained(calls.watchRun({ runId: 'run-1' }, ALLOWED));
  expect(learned).toEqual(Array.from({ length: 3 }, () => clock.now().getTime()));
});

it('a call contains the time of the caller only if the caller is a service (BD-3)', async () => {
  const clock = new ManualClock();
  const { client, received } = await timed(new ManualClock());
  await client({ clock }).startRun(START, ALLOWED);
  await client({ clock, serviceToken: async () => KEY }).startRun(START);
  expect(received).toEqual([undefined, String(clock.now().getTime())]);
});
