import {
  DiscardPolicy,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from '@nats-io/jetstream';
import { PreconditionError, UnavailableError } from '@writ/kernel';
import type { StreamPlan } from '../hook-streams.ts';
import { matchSubject } from '../subjects.ts';
import { compareConfig } from './compare-config.ts';
import { ensureConsumer } from './consumers.ts';
import { apiErrorOf } from './errors.ts';
import type { NatsSettings } from './options.ts';

const STREAM_NOT_FOUND = 10_059;
const NANOS = 1_000_000;
/** Time in which JetStream drops a repeated message; after a crash an outbox repeats its last messages. */
const DUPLICATE_WINDOW_MS = 120_000;

/** A message is kept until every consumer has acknowledged it; a full stream rejects messages. */
const KEPT = { retention: RetentionPolicy.Interest, discard: DiscardPolicy.New, max_age: 0 };
/** A message is deleted after three days; a full stream deletes its oldest messages. */
const OBSERVED = {
  retention: RetentionPolicy.Limits,
  discard: DiscardPolicy.Old,
  max_age: 3 * 24 * 3_600_000 * NANOS,
  // 100 ms, as short as NATS permits: the streams of the emitters already drop duplicates, and with a longer window an
  // emitter could suppress the copies of another by publishing under the same ids.
  duplicate_window: 100 * NANOS,
};

/**
 * Creates the streams that do not exist, with the consumers of observers, and checks the others: a message is kept
 * until every consumer has acknowledged it, and a full stream rejects messages instead of deleting old ones (HK-2),
 * except in a stream for observers. Subjects are added to a stream and never removed, because replicas of another
 * version may publish under them (BD-6).
 * @throws PreconditionError BUS_STREAM_MISMATCH, BUS_FEATURE_UNSUPPORTED, BUS_SETTING_REJECTED, for the consumers of
 *   observers BUS_DURABLE_MISMATCH, BUS_CONSUMER_MISMATCH; UnavailableError BUS_STREAM_MISSING if a stream does not
 *   exist and must not be created
 */
export async function ensureStreams(
  manager: JetStreamManager,
  settings: NatsSettings,
  version: string,
): Promise<void> {
  await Promise.all(settings.streams.map((plan) => ensureStream(manager, plan, settings, version)));
}

async function ensureStream(
  manager: JetStreamManager,
  plan: StreamPlan,
  settings: NatsSettings,
  version: string,
): Promise<void> {
  const { name, subjects, republish, observers } = plan;
  const wanted = {
    name,
    storage: StorageType.File,
    max_msgs: -1,
    max_msgs_per_subject: -1,
    no_ack: false,
    duplicate_window: DUPLICATE_WINDOW_MS * NANOS,
    ...(observers === undefined ? KEPT : OBSERVED),
    ...settings.streamConfig,
  };
  const created = {
    ...wanted,
    subjects: [...subjects],
    ...(republish && { republish }),
    max_bytes: settings.streamBytes,
    num_replicas: settings.replicas,
  };
  const found = await findStream(manager, name);
  const config = found ?? (await createStream(manager, settings, created));
  compareConfig(`the stream ${name}`, wanted, config, {
    version,
    mismatch: 'BUS_STREAM_MISMATCH',
  });
  if (!settings.createsStreams) return;
  await updateStream(manager, plan, config);
  const limits = { ackWaitMs: settings.ackWaitMs, version };
  for (const durable of observers ?? [])
    await ensureConsumer(manager, { stream: name, durable, filter: undefined }, limits);
}

/** Adds the subjects and the `republish` setting that a stream created by an earlier version lacks. */
async function updateStream(
  manager: JetStreamManager,
  { name, subjects, republish }: StreamPlan,
  config: StreamConfig,
): Promise<void> {
  const isStored = (subject: string) => config.subjects.some((own) => matchSubject(own, subject));
  const added = subjects.filter((subject) => !isStored(subject));
  if (added.length === 0 && (republish === undefined || config.republish !== undefined)) return;
  try {
    await manager.streams.update(name, {
      ...config,
      subjects: [...config.subjects, ...added],
      ...(republish && { republish }),
    });
  } catch (error) {
    throw rejectedSettings(name, error);
  }
}

async function findStream(
  manager: JetStreamManager,
  name: string,
): Promise<StreamConfig | undefined> {
  try {
    return (await manager.streams.info(name)).config;
  } catch (error) {
    if (apiErrorOf(error)?.code === STREAM_NOT_FOUND) return undefined;
    throw error;
  }
}

async function createStream(
  manager: JetStreamManager,
  { createsStreams }: NatsSettings,
  config: Partial<StreamConfig> & Pick<StreamConfig, 'name'>,
): Promise<StreamConfig> {
  if (!createsStreams) {
    throw new UnavailableError(
      'BUS_STREAM_MISSING',
      `Stream ${config.name} does not exist yet; the supervisor creates it.`,
      { stream: config.name },
    );
  }
  try {
    return (await manager.streams.add(config)).config;
  } catch (error) {
    // Another replica may have created the stream, possibly with other limits, which are not compared.
    const other = await findStream(manager, config.name);
    if (other !== undefined) return other;
    throw rejectedSettings(config.name, error);
  }
}

/** Returns BUS_SETTING_REJECTED if the server rejected the settings of a stream; otherwise the error itself. */
function rejectedSettings(stream: string, error: unknown): unknown {
  const refusal = apiErrorOf(error);
  if (refusal?.status !== 400) return error;
  return new PreconditionError(
    'BUS_SETTING_REJECTED',
    `The NATS server rejected the settings of stream ${stream}: ${refusal.message}.`,
    { stream },
    { cause: error },
  );
}
