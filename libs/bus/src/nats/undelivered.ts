import {
  type ConsumerInfo,
  type MsgRequest,
  RetentionPolicy,
  type StoredMsg,
} from '@nats-io/jetstream';
import type { ConsumerPlan } from './consumers.ts';
import type { NatsSession } from './session.ts';

/** A message that the server will not redeliver. */
export interface UndeliveredMessage {
  readonly message: StoredMsg;
  /**
   * Acknowledges the message; the server then deletes it, unless another consumer needs it or the stream is for
   * observers.
   */
  readonly acknowledge: () => void;
}

/**
 * Whether a server that was killed lost its pending deliveries: it has delivered messages that were not
 * acknowledged, but none is pending (observed with nats-server 2.9).
 */
export function hasLostDeliveries({
  delivered,
  ack_floor,
  num_ack_pending,
}: ConsumerInfo): boolean {
  return num_ack_pending === 0 && delivered.stream_seq > ack_floor.stream_seq;
}

/**
 * The stored messages that the server no longer delivers, oldest first: lost deliveries and, if this is the only
 * consumer of the stream, messages that the server regards as acknowledged but did not delete. They must be handled
 * before later messages, so that none is lost and the order is kept (HK-1, HK-2); repeats are detected by their ids.
 */
export async function* undeliveredMessages(
  { connection, manager }: NatsSession,
  { stream, durable }: ConsumerPlan,
  info: ConsumerInfo,
): AsyncIterable<UndeliveredMessage> {
  const { delivered, ack_floor: acknowledged } = info;
  const last = hasLostDeliveries(info) ? delivered.stream_seq : acknowledged.stream_seq;
  const { state, config } = await manager.streams.info(stream);
  // A stream for observers keeps acknowledged messages.
  const isOnly = state.consumer_count === 1 && config.retention === RetentionPolicy.Interest;
  let seq = isOnly ? state.first_seq : acknowledged.stream_seq + 1;
  while (seq <= last) {
    const next: MsgRequest & { readonly next_by_subj: string } = { seq, next_by_subj: '>' };
    const message = await manager.streams.getMessage(stream, next);
    if (message === null || message.seq > last) return;
    seq = message.seq + 1;
    // Tokens of the reply subject: delivery count, stream sequence, consumer sequence, time, pending count.
    const reply = `1.${message.seq}.${delivered.consumer_seq}.${message.time.getTime() * 1e6}.0`;
    const acknowledge = () => connection.publish(`$JS.ACK.${stream}.${durable}.${reply}`);
    yield { message, acknowledge };
  }
}
