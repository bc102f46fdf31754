import { systemClock } from '@writ/kernel';
import {
  appendOutbox,
  createOutboxRelay,
  initialMigration,
  type OutboxDatabase,
  openStore,
  outboxTable,
} from '@writ/store';
import { isNatsAvailable, startNatsServer } from '@writ/testing/nats';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  HOOK_EMITTER_NAMES,
  HOOK_EMITTERS,
  HOOK_SUBJECTS,
  type HookEmitter,
  hookSubject,
} from '../src/index.ts';
import { createNatsBus } from '../src/nats/index.ts';

const RUNS = ['r1', 'r2', 'r3'];
const ROUNDS = 12;

/** A service that only has an outbox and publishes events of every run in turn. */
async function emitterOf(service: HookEmitter, address: string) {
  const store = await openStore<OutboxDatabase>({
    location: { dialect: 'sqlite', file: ':memory:' },
    migrations: initialMigration([outboxTable]),
    service,
  });
  const bus = await createNatsBus({
    servers: [address],
    name: service,
    requiredConsumers: ['timeline'],
    streamBytes: 2 ** 20,
    retryBaseMs: 5,
    retryMaxMs: 50,
    onError: () => undefined,
  });
  const relay = createOutboxRelay({
    store,
    publish: (message) => bus.publish(message),
    onError: () => undefined,
    clock: systemClock,
    retryBaseMs: 5,
    retryMaxMs: 50,
  });
  relay.start();
  const events = HOOK_EMITTERS[service];
  return {
    published: [] as string[],
    async emit(round: number): Promise<void> {
      const event = events[round % events.length] ?? events[0];
      await store.transaction(async (trx) => {
        for (const runId of RUNS) {
          const eventId = `${service}/${runId}/${round}`;
          const subject = hookSubject({ tenant: 't1', runId, agent: 'a', event });
          const payload = new TextEncoder().encode(eventId);
          await appendOutbox(trx, { eventId, subject, payload }, systemClock.now());
          this.published.push(eventId);
        }
      });
      relay.wake();
    },
    flush: () => relay.flush(),
    async close(): Promise<void> {
      await relay.stop();
      await bus.close();
      await store.close();
    },
  };
}

describe.skipIf(!isNatsAvailable())('an outage of NATS while outboxes are published', () => {
  it('loses no event and keeps the order of each emitter and run (HK-1, HK-2)', async () => {
    const server = await startNatsServer();
    onTestFinished(() => server.stop());
    const handled = new Set<string>();
    let deliveries = 0;
    const timeline = await createNatsBus({
      servers: [server.address],
      name: 'timeline',
      streamBytes: 2 ** 20,
      ackWaitMs: 300,
      retryBaseMs: 5,
      retryMaxMs: 50,
      onError: () => undefined,
    });
    await timeline.subscribe({
      subject: HOOK_SUBJECTS,
      durable: 'timeline',
      handler: async ({ eventId }) => {
        deliveries += 1;
        if (deliveries % 17 === 0) throw new Error('the store is busy');
        handled.add(eventId);
      },
    });
    const emitters = await Promise.all(
      HOOK_EMITTER_NAMES.map((service) => emitterOf(service, server.address)),
    );
    const emitAll = async (from: number, to: number): Promise<void> => {
      for (let round = from; round < to; round += 1) {
        await Promise.all(emitters.map((emitter) => emitter.emit(round)));
      }
    };
    await emitAll(0, ROUNDS / 3);
    await vi.waitFor(() => expect(handled.size).toBeGreaterThan(0));
    await server.kill();
    await emitAll(ROUNDS / 3, (ROUNDS * 2) / 3);
    await server.start();
    await emitAll((ROUNDS * 2) / 3, ROUNDS);
    await Promise.all(emitters.map((emitter) => emitter.flush()));
    const published = emitters.flatMap((emitter) => emitter.published);
    await vi.waitFor(() => expect(handled.size).toBe(published.length), { timeout: 10_000 });
    const sequence = (ids: Iterable<string>, emitter: string, run: string): string[] =>
      [...ids].filter((id) => id.startsWith(`${emitter}/${run}/`));
    for (const emitter of HOOK_EMITTER_NAMES) {
      for (const run of RUNS)
        expect(sequence(handled, emitter, run)).toEqual(sequence(published, emitter, run));
    }
    await Promise.all([...emitters.map((emitter) => emitter.close()), timeline.close()]);
  });
});
