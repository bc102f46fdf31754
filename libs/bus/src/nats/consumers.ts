import { AckPolicy, type ConsumerInfo, type JetStreamManager } from '@nats-io/jetstream';
import { PreconditionError } from '@writ/kernel';
import type { StreamPlan } from '../hook-streams.ts';
import { matchSubject } from '../subjects.ts';
import { apiErrorOf } from './errors.ts';
import { compareConfig } from './read-back.ts';

const CONSUMER_NOT_FOUND = 10_014;
const NANOS = 1_000_000;

/** A durable consumer of one stream. */
export interface ConsumerPlan {
  readonly stream: string;
  readonly durable: string;
  /** Absent for everything that the stream keeps. */
  readonly filter: string | undefined;
}

/**
 * The consumers that a subscription needs, one in every stream that keeps something of its subject.
 * Servers before 2.10 know one filter only, and only within one subject of the stream, so a subject
 * that cuts across several is filtered by whoever takes the messages.
 */
export function planConsumers(
  streams: readonly StreamPlan[],
  durable: string,
  subject: string,
): ConsumerPlan[] {
  return streams.flatMap(({ name, subjects }) => {
    const kept = subjects.filter((own) => overlap(own, subject));
    if (kept.length === 0) return [];
    const wantsAll = subjects.every((own) => covers(subject, own));
    const isWithinOne = kept.some((own) => covers(own, subject));
    return [{ stream: name, durable, filter: !wantsAll && isWithinOne ? subject : undefined }];
  });
}

/**
 * Makes sure that a consumer is there and works as it must: one message at a time over all replicas,
 * so that a message that is tried again is not overtaken.
 * @returns milliseconds that the server waits for a sign of life
 * @throws PreconditionError BUS_DURABLE_MISMATCH when it is there for another subject,
 *   BUS_CONSUMER_MISMATCH, BUS_FEATURE_UNSUPPORTED
 */
export async function ensureConsumer(
  manager: JetStreamManager,
  { stream, durable, filter }: ConsumerPlan,
  { ackWaitMs, version }: { readonly ackWaitMs: number; readonly version: string },
): Promise<number> {
  const wanted = {
    durable_name: durable,
    ack_policy: AckPolicy.Explicit,
    max_ack_pending: 1,
    max_deliver: -1,
  };
  const { config } =
    (await findConsumer(manager, stream, durable)) ??
    (await manager.consumers.add(stream, {
      ...wanted,
      ack_wait: ackWaitMs * NANOS,
      ...(filter === undefined ? {} : { filter_subject: filter }),
    }));
  const { filter_subject, filter_subjects } = config;
  const has = filter_subjects ?? (filter_subject === undefined ? [] : [filter_subject]);
  if (has.join() !== (filter ?? '')) {
    throw new PreconditionError(
      'BUS_DURABLE_MISMATCH',
      `The durable ${durable} is subscribed to ${has.join(', ') || 'everything'} already, not to ${filter ?? 'everything'}.`,
      { durable },
    );
  }
  compareConfig(`the consumer ${durable}`, wanted, config, {
    version,
    mismatch: 'BUS_CONSUMER_MISMATCH',
  });
  return (config.ack_wait ?? ackWaitMs * NANOS) / NANOS;
}

/** The consumer as it is, or undefined. */
export async function findConsumer(
  manager: JetStreamManager,
  stream: string,
  durable: string,
): Promise<ConsumerInfo | undefined> {
  try {
    return await manager.consumers.info(stream, durable);
  } catch (error) {
    if (apiErrorOf(error)?.code === CONSUMER_NOT_FOUND) return undefined;
    throw error;
  }
}

/** Whether there can be a subject that both patterns take. */
function overlap(left: string, right: string): boolean {
  const [a, b] = [left.split('.'), right.split('.')];
  for (let index = 0; index < Math.max(a.length, b.length); index += 1) {
    const [x, y] = [a[index], b[index]];
    if (x === undefined || y === undefined) return false;
    if (x === '>' || y === '>') return true;
    if (x !== y && x !== '*' && y !== '*') return false;
  }
  return true;
}

/** Whether one pattern takes all that another takes. */
function covers(wide: string, narrow: string): boolean {
  // As a subject, `*` is a token that only `*` takes; `>` stands for more than one token.
  if (narrow.endsWith('>') && !wide.endsWith('>')) return false;
  return matchSubject(wide, narrow);
}
