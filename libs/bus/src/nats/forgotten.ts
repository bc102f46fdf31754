import type { ConsumerInfo, MsgRequest, StoredMsg } from '@nats-io/jetstream';
import type { ConsumerPlan } from './consumers.ts';
import type { NatsSession } from './session.ts';

/** A message that the server will not deliver again by itself. */
export interface ForgottenMessage {
  readonly message: StoredMsg;
  /** Tells the server that it was handled; it then lets go of it, unless another consumer wants it. */
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
 * The messages that the server keeps and delivers to nobody, oldest first: those that it forgot, and,
 * when this is the only consumer of the stream, those that it takes for handled but never let go of.
 * They are to be handled before anything that comes later, so that none is lost and order is kept
 * (HK-1, HK-2); those that were handled before are known by their ids.
 */
export async function* forgottenMessages(
  { connection, manager }: NatsSession,
  { stream, durable }: ConsumerPlan,
  info: ConsumerInfo,
): AsyncIterable<ForgottenMessage> {
  const { delivered, ack_floor: acknowledged } = info;
  const last = isForgetful(info) ? delivered.stream_seq : acknowledged.stream_seq;
  const { state } = await manager.streams.info(stream);
  const isOnly = state.consumer_count === 1;
  let seq = isOnly ? state.first_seq : acknowledged.stream_seq + 1;
  while (seq <= last) {
    const next: MsgRequest & { readonly next_by_subj: string } = { seq, next_by_subj: '>' };
    const message = await manager.streams.getMessage(stream, next);
    if (message === null || message.seq > last) return;
    seq = message.seq + 1;
    // As the server writes it where to answer: deliveries, place in the stream and for the consumer, when, how many wait.
    const place = `1.${message.seq}.${delivered.consumer_seq}.${message.time.getTime() * 1e6}.0`;
    const acknowledge = () => connection.publish(`$JS.ACK.${stream}.${durable}.${place}`);
    yield { message, acknowledge };
  }
}
