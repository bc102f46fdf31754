import { AsyncLocalStorage } from 'node:async_hooks';
import type { BusMessage, DurableOptions } from '@writ/bus';
import { isWritError } from '@writ/kernel';
import {
  ATTR_ERROR_TYPE,
  ATTR_WRIT_EVENT,
  ATTR_WRIT_EVENT_ID,
  contextFromTraceparent,
  ROOT_CONTEXT,
  SpanKind,
  type Telemetry,
  traceparentOf,
  withSpan,
} from '@writ/telemetry';

/** OpenTelemetry's conventions for messaging, as far as they are used. */
const ATTR_MESSAGING_OPERATION_TYPE = 'messaging.operation.type';
const ATTR_MESSAGING_CONSUMER = 'messaging.consumer.group.name';
const ATTR_CONSUMER = 'writ.consumer';

type Handler = (message: BusMessage) => Promise<void>;
type HandlerOfAll = (messages: readonly BusMessage[]) => Promise<void>;

/**
 * Hands an event to the bus in a span of its own, below that of the fact that it tells of, and has the
 * message carry that span (SYS-1, HK-2).
 */
export function tracedPublish({ tracer, traces, metrics }: Telemetry, publish: Handler): Handler {
  if (!traces && !metrics.enabled) return publish;
  return async (message) => {
    const event = eventOf(message);
    const send = async (): Promise<void> => {
      const traceparent = traceparentOf();
      const carried = traces && traceparent !== undefined ? { traceparent } : {};
      await publish({ ...message, headers: { ...message.headers, ...carried } });
    };
    await counted(metrics, 'published', { [ATTR_WRIT_EVENT]: event }, () =>
      spanOf({ tracer, traces }, `publish ${event}`, SpanKind.PRODUCER, message, 'send', send),
    );
  };
}

/** The same for events that go together: each has a span of its own. */
export function tracedPublishAll(telemetry: Telemetry, publishAll: HandlerOfAll): HandlerOfAll {
  if (!telemetry.traces && !telemetry.metrics.enabled) return publishAll;
  return eachTraced((publish) => tracedPublish(telemetry, publish), publishAll);
}

/** Takes events from the bus in spans below those of whoever published them (SYS-1, HK-2). */
export function tracedHandlers(
  telemetry: Telemetry,
  durable: string,
  { handler, handleAll }: Required<Pick<DurableOptions, 'handler' | 'handleAll'>>,
): Required<Pick<DurableOptions, 'handler' | 'handleAll'>> {
  if (!telemetry.traces && !telemetry.metrics.enabled) return { handler, handleAll };
  const traced = (work: Handler) => tracedHandler(telemetry, durable, work);
  return { handler: traced(handler), handleAll: eachTraced(traced, handleAll) };
}

function tracedHandler(
  { tracer, traces, metrics }: Telemetry,
  durable: string,
  handler: Handler,
): Handler {
  return async (message) => {
    const event = eventOf(message);
    const labels = { [ATTR_WRIT_EVENT]: event, [ATTR_CONSUMER]: durable };
    await counted(metrics, 'delivered', labels, () =>
      spanOf(
        { tracer, traces },
        `process ${event}`,
        SpanKind.CONSUMER,
        message,
        'process',
        () => handler(message),
        durable,
      ),
    );
  };
}

/** Begins what is traced of each message, does all of them in one go outside of it, and ends it. */
function eachTraced(traced: (work: Handler) => Handler, all: HandlerOfAll): HandlerOfAll {
  return async (messages) => {
    const outside = AsyncLocalStorage.snapshot();
    const carried = [...messages];
    const done = Promise.withResolvers<void>();
    let missing = messages.length;
    await Promise.all(
      messages.map((message, index) =>
        traced(async (carrying) => {
          carried[index] = carrying;
          missing -= 1;
          if (missing === 0) done.resolve(outside(all, carried));
          await done.promise;
        })(message),
      ),
    );
  };
}

async function spanOf(
  { tracer, traces }: Pick<Telemetry, 'tracer' | 'traces'>,
  name: string,
  kind: SpanKind,
  { eventId, headers }: BusMessage,
  operation: 'send' | 'process',
  work: () => Promise<void>,
  durable?: string,
): Promise<void> {
  const parent = contextFromTraceparent(headers.traceparent);
  // An event of no trace begins none.
  if (!traces || parent === ROOT_CONTEXT) return await work();
  const attributes = {
    [ATTR_MESSAGING_OPERATION_TYPE]: operation,
    [ATTR_WRIT_EVENT_ID]: eventId,
    ...(durable === undefined ? {} : { [ATTR_MESSAGING_CONSUMER]: durable }),
  };
  await withSpan(tracer, name, { parent, kind, attributes }, work);
}

async function counted(
  { count }: Telemetry['metrics'],
  metric: 'published' | 'delivered',
  labels: Readonly<Record<string, string>>,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
    count(metric, labels);
  } catch (error) {
    count(metric, { ...labels, [ATTR_ERROR_TYPE]: isWritError(error) ? error.reason : 'INTERNAL' });
    throw error;
  }
}

/** The last token of the subject. */
function eventOf({ subject }: BusMessage): string {
  return subject.slice(subject.lastIndexOf('.') + 1);
}
