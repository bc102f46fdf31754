import type { ConsumerInfo, StoredMsg } from '@nats-io/jetstream';
import type { ConsumerPlan } from './consumers.ts';
import type { NatsSession } from './session.ts';

/** A message that the server will not deliver again by itself. */
export interface ForgottenMessage {
  readonly message: StoredMsg;
  /** Tells the server that it was handled. */
  readonly acknowledge: () => void;
}

/**
 * Whether a server that was killed has forgotten what it waits for: it knows that it delivered messages
 * which nobody acknowledged, and expects no answer (seen with nats-server 2.9).
 */
export function isForgetful({ delivered, ack_floor, num_ack_pending }: ConsumerInfo): boolean {
  return num_ack_pending === 0 && delivered.stream_seq > ack_floor.stream_seq;
}

/**
 * The messages that a forgetful server keeps and delivers to nobody, oldest first. They are to be
 * handled before anything that comes later, so that none is lost and order is kept (HK-1, HK-2).
 */
export async function* forgottenMessages(
  { connection, manager }: NatsSession,
  { stream, durable }: ConsumerPlan,
  { delivered, ack_floor: acknowledged }: ConsumerInfo,
): AsyncIterable<ForgottenMessage> {
  for (let seq = acknowledged.stream_seq + 1; seq <= delivered.stream_seq; seq += 1) {
    const message = await manager.streams.getMessage(stream, { seq });
    if (message === null) continue;
    // As the server writes it where to answer: deliveries, place in the stream and for the consumer, when, how many wait.
    const place = `1.${seq}.${delivered.consumer_seq}.${message.time.getTime() * 1e6}.0`;
    const acknowledge = () => connection.publish(`$JS.ACK.${stream}.${durable}.${place}`);
    yield { message, acknowledge };
  }
}
