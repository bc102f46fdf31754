import { setTimeout as pause } from 'node:timers/promises';
import { isNatsAvailable, startNatsServer } from '@writ/testing/nats';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { HOOK_SUBJECTS, hookSubject } from '../src/index.ts';
import { createNatsBus } from '../src/nats/index.ts';

const ROUNDS = 12;

describe.skipIf(!isNatsAvailable())(
  'a NATS server that is killed while messages are handled',
  () => {
    it('loses a pending delivery; the bus handles that message before later messages (HK-1, HK-2)', async () => {
      const server = await startNatsServer();
      onTestFinished(() => server.stop());
      const handled: string[] = [];
      /** Fails the current handler. */
      let fail: ((error: Error) => void) | undefined;
      let begun = '';
      let holds = false;
      const bus = await createNatsBus({
        servers: [server.address],
        name: 'timeline',
        streamBytes: 2 ** 20,
        ackWaitMs: 300,
        retryBaseMs: 5,
        retryMaxMs: 50,
        onError: () => undefined,
      });
      onTestFinished(() => bus.close());
      await bus.subscribe({
        subject: HOOK_SUBJECTS,
        durable: 'timeline',
        handler: async ({ eventId }) => {
          begun = eventId;
          if (holds) await new Promise((_, reject) => (fail = reject));
          handled.push(eventId);
        },
      });
      const subject = hookSubject({ tenant: 't1', runId: 'r1', agent: 'a', event: 'RUN_START' });
      const publish = async (eventId: string): Promise<void> =>
        await vi.waitFor(() =>
          bus.publish({ eventId, subject, payload: new Uint8Array(), headers: {} }),
        );
      for (let round = 0; round < ROUNDS; round += 1) {
        holds = true;
        await publish(`in-flight-${round}`);
        await publish(`later-${round}`);
        await vi.waitFor(() => expect(begun).toBe(`in-flight-${round}`));
        // What the server loses depends on when it last persisted its pending deliveries.
        await pause(20 * round);
        await server.kill();
        holds = false;
        fail?.(new Error('the process was killed, too'));
        await server.start();
        await vi.waitFor(() => expect(handled).toContain(`later-${round}`));
      }
      const once = [...new Set(handled)];
      expect(once).toEqual(
        Array.from({ length: ROUNDS }, (_, round) => [
          `in-flight-${round}`,
          `later-${round}`,
        ]).flat(),
      );
    });
  },
);
