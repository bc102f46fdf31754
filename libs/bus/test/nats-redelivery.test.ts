import { AckPolicy, type JetStreamClient, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { InvalidRequestError } from '@writ/kernel';
import { isNatsAvailable, startNatsServer } from '@writ/testing/nats';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Bus, HOOK_SUBJECTS, hookStream, hookSubject } from '../src/index.ts';
import { createNatsBus } from '../src/nats/index.ts';

const { name: STREAM } = hookStream('supervisor');
const DURABLE = 'timeline';
const SUBJECT = hookSubject({ tenant: 't1', runId: 'r1', agent: 'a', event: 'RUN_START' });
const NANOS = 1_000_000;

/**
 * A server in the state after a crash in which it lost its pending deliveries: it has delivered `lost` to a subscriber
 * that did not acknowledge the message, and will not redeliver the message.
 */
class ServerWithLostDelivery {
  readonly bus: Bus;
  readonly #js: JetStreamClient;

  private constructor(bus: Bus, js: JetStreamClient) {
    this.bus = bus;
    this.#js = js;
  }

  /** @param eventId of the lost message; null for a message without an id */
  static async start(eventId: string | null = 'lost'): Promise<ServerWithLostDelivery> {
    const server = await startNatsServer();
    onTestFinished(() => server.stop());
    const bus = await createNatsBus({
      servers: [server.address],
      name: 'timeline',
      streamBytes: 2 ** 20,
      onError: () => undefined,
    });
    onTestFinished(() => bus.close());
    const connection = await connect({ servers: server.address });
    onTestFinished(() => connection.close());
    const created = new ServerWithLostDelivery(bus, jetstream(connection));
    const manager = await jetstreamManager(connection);
    const settings = { ack_policy: AckPolicy.Explicit, max_ack_pending: 1, ack_wait: 50 * NANOS };
    await manager.consumers.add(STREAM, { ...settings, durable_name: DURABLE, max_deliver: 1 });
    if (eventId !== null) await created.publish(eventId);
    else await created.#js.publish(SUBJECT);
    await created.fetchNext();
    // The server expires the first delivery only when another request arrives.
    await expect.poll(() => created.fetchNext().then(() => created.ackPending())).toBe(0);
    await manager.consumers.update(STREAM, DURABLE, { max_deliver: -1, ack_wait: 5_000 * NANOS });
    return created;
  }

  async publish(eventId: string): Promise<void> {
    await this.bus.publish({ eventId, subject: SUBJECT, payload: new Uint8Array(), headers: {} });
  }

  /** Fetches the next message; returns null if none arrives within a second. */
  async fetchNext() {
    const consumer = await this.#js.consumers.get(STREAM, DURABLE);
    return await consumer.next({ expires: 1_000 });
  }

  async ackPending(): Promise<number> {
    const consumer = await this.#js.consumers.get(STREAM, DURABLE);
    return (await consumer.info()).num_ack_pending;
  }

  async storedMessages(): Promise<number> {
    const stream = await this.#js.streams.get(STREAM);
    return (await stream.info()).state.messages;
  }

  async addConsumer(durable_name: string): Promise<void> {
    const manager = await this.#js.jetstreamManager();
    await manager.consumers.add(STREAM, { durable_name, ack_policy: AckPolicy.Explicit });
  }

  /**
   * Subscribes like the supervisor; returns the ids of handled messages in order.
   * @param rejected id of a message that the handler rejects as invalid
   */
  async subscribe(rejected?: string): Promise<string[]> {
    const handled: string[] = [];
    const handler = async ({ eventId }: { readonly eventId: string }) => {
      if (eventId === rejected) throw new InvalidRequestError('MALFORMED_MESSAGE', 'Bad.');
      handled.push(eventId);
    };
    const { unsubscribe } = await this.bus.subscribe({
      subject: HOOK_SUBJECTS,
      durable: DURABLE,
      handler,
    });
    onTestFinished(unsubscribe);
    return handled;
  }
}

describe.skipIf(!isNatsAvailable())('a message that the NATS server no longer delivers', () => {
  it('is handled before later messages and deleted from the stream (HK-1, HK-2)', async () => {
    const server = await ServerWithLostDelivery.start();
    await server.publish('later');
    const handled = await server.subscribe();
    await vi.waitFor(() => expect(handled).toEqual(['lost', 'later']));
    await expect.poll(() => server.storedMessages()).toBe(0);
  });

  it('is handled late and deleted if a later message was handled already (HK-1, HK-2)', async () => {
    const server = await ServerWithLostDelivery.start();
    await server.publish('later');
    await (await server.fetchNext())?.ackAck();
    expect(await server.storedMessages()).toBe(1);
    const handled = await server.subscribe();
    await vi.waitFor(() => expect(handled).toEqual(['lost']));
    await expect.poll(() => server.storedMessages()).toBe(0);
    await server.publish('last');
    await vi.waitFor(() => expect(handled).toEqual(['lost', 'last']));
  });

  it('does not block other messages if it has no id (HK-2)', async () => {
    const server = await ServerWithLostDelivery.start(null);
    await server.publish('later');
    const handled = await server.subscribe();
    await vi.waitFor(() => expect(handled).toEqual(['later']));
    await expect.poll(() => server.storedMessages()).toBe(0);
  });

  it('does not block other messages if its handler rejects it as invalid (HK-2, SYS-6)', async () => {
    const server = await ServerWithLostDelivery.start();
    await server.publish('later');
    const handled = await server.subscribe('lost');
    await vi.waitFor(() => expect(handled).toEqual(['later']));
    await expect.poll(() => server.storedMessages()).toBe(0);
  });

  it('is kept while another consumer may need it', async () => {
    const server = await ServerWithLostDelivery.start();
    await server.addConsumer('other-consumer');
    await server.publish('later');
    const handled = await server.subscribe();
    await vi.waitFor(() => expect(handled).toEqual(['lost', 'later']));
    expect(await server.storedMessages()).toBe(2);
  });
});
