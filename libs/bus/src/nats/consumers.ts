import { AckPolicy, type ConsumerInfo, type JetStreamManager } from '@nats-io/jetstream';
import { PreconditionError } from '@writ/kernel';
import type { StreamPlan } from '../hook-streams.ts';
import { matchSubject } from '../subjects.ts';
import { compareConfig } from './compare-config.ts';
import { apiErrorOf } from './errors.ts';

const CONSUMER_NOT_FOUND = 10_014;
const NANOS = 1_000_000;

/** A durable consumer of one stream. */
export interface ConsumerPlan {
  readonly stream: string;
  readonly durable: string;
  /** Absent for all subjects of the stream. */
  readonly filter: string | undefined;
}

/**
 * Plans the consumers of a subscription, one for every stream with a matching subject. Servers before 2.10 support only
 * one filter, which must lie within one subject of the stream. If the subscribed subject matches several subjects of
 * the stream, the consumer has no filter, and the subscriber drops the other messages.
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
 * Creates a consumer if it does not exist and checks its configuration: one message at a time across all replicas, so
 * that no message overtakes a redelivered message.
 * @returns the acknowledgement timeout of the server, ms
 * @throws PreconditionError BUS_DURABLE_MISMATCH if the consumer exists with another subject, BUS_CONSUMER_MISMATCH,
 *   BUS_FEATURE_UNSUPPORTED
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
      `Durable consumer ${durable} exists with subject ${has.join(', ') || 'everything'} instead of ${filter ?? 'everything'}.`,
      { durable },
    );
  }
  compareConfig(`the consumer ${durable}`, wanted, config, {
    version,
    mismatch: 'BUS_CONSUMER_MISMATCH',
  });
  return (config.ack_wait ?? ackWaitMs * NANOS) / NANOS;
}

/** The consumer, or undefined if it does not exist. */
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

/** Whether a subject can match both patterns. */
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

/** Whether one pattern matches every subject that another matches. */
function covers(wide: string, narrow: string): boolean {
  // `narrow` is matched as if it were a subject: only `*` and `>` match its token `*`. A final `>` of `narrow` stands
  // for several tokens, so only a final `>` of `wide` matches it.
  if (narrow.endsWith('>') && !wide.endsWith('>')) return false;
  return matchSubject(wide, narrow);
}
