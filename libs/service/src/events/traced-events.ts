import { AsyncLocalStorage } from 'node:async_hooks';
import type { BusMessage, DurableOptions } from '@writ/bus';
import { isWritError } from '@writ/kernel';
import {
  ATTR_ERROR_TYPE,
  ATTR_WRIT_EVENT,
  ATTR_WRIT_EVENT_ID,
  context,
  contextFromTraceparent,
  ROOT_CONTEXT,
  SpanKind,
  type Telemetry,
  traceparentOf,
  withSpan,
} from '@writ/telemetry';

/** Attributes from OpenTelemetry's semantic conventions for messaging. */
const ATTR_MESSAGING_OPERATION_TYPE = 'messaging.operation.type';
const ATTR_MESSAGING_CONSUMER = 'messaging.consumer.group.name';
const ATTR_CONSUMER = 'writ.consumer';

type Handler = (message: BusMessage) => Promise<void>;
type HandlerOfAll = (messages: readonly BusMessage[]) => Promise<void>;

/**
 * Returns a handler that publishes an event as part of the trace in its `traceparent` header. With internal spans, it
 * starts a publish span and sets the header to that span; otherwise the header is unchanged (SYS-1, HK-2).
 */
export function tracedPublish(telemetry: Telemetry, publish: Handler): Handler {
  const { traces, internalSpans, metrics } = telemetry;
  if (!traces && !metrics.enabled) return publish;
  return async (message) => {
    const event = eventOf(message);
    const send = async (): Promise<void> => {
      const traceparent = traceparentOf();
      const carried = internalSpans && traceparent !== undefined ? { traceparent } : {};
      await publish({ ...message, headers: { ...message.headers, ...carried } });
    };
    await counted(metrics, 'published', { [ATTR_WRIT_EVENT]: event }, () =>
      inSpan(telemetry, message, {
        name: `publish ${event}`,
        operation: 'send',
        work: send,
      }),
    );
  };
}

/** Returns a handler that publishes a batch of events, each traced as by {@link tracedPublish}. */
export function tracedPublishAll(telemetry: Telemetry, publishAll: HandlerOfAll): HandlerOfAll {
  if (!telemetry.traces && !telemetry.metrics.enabled) return publishAll;
  return traceEach((publish) => tracedPublish(telemetry, publish), publishAll);
}

/**
 * Returns handlers that process each event with the span in its `traceparent` header as parent; with internal spans,
 * each in a new span (SYS-1, HK-2).
 */
export function tracedHandlers(
  telemetry: Telemetry,
  durable: string,
  { handler, handleAll }: Required<Pick<DurableOptions, 'handler' | 'handleAll'>>,
): Required<Pick<DurableOptions, 'handler' | 'handleAll'>> {
  if (!telemetry.traces && !telemetry.metrics.enabled) return { handler, handleAll };
  const traced = (work: Handler) => tracedHandler(telemetry, durable, work);
  return { handler: traced(handler), handleAll: traceEach(traced, handleAll) };
}

function tracedHandler(telemetry: Telemetry, durable: string, handler: Handler): Handler {
  const { metrics } = telemetry;
  return async (message) => {
    const event = eventOf(message);
    const labels = { [ATTR_WRIT_EVENT]: event, [ATTR_CONSUMER]: durable };
    await counted(metrics, 'delivered', labels, () =>
      inSpan(telemetry, message, {
        name: `process ${event}`,
        operation: 'process',
        durable,
        work: () => handler(message),
      }),
    );
  };
}

/** Starts a span for every message, runs the batch once outside of these spans, and then ends them. */
function traceEach(traced: (work: Handler) => Handler, all: HandlerOfAll): HandlerOfAll {
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

interface TracedWork {
  readonly name: string;
  readonly operation: 'send' | 'process';
  /** The durable consumer that processes the message. */
  readonly durable?: string;
  readonly work: () => Promise<void>;
}

async function inSpan(
  { tracer, traces, internalSpans }: Telemetry,
  { eventId, headers }: BusMessage,
  { name, operation, durable, work }: TracedWork,
): Promise<void> {
  const parent = contextFromTraceparent(headers.traceparent);
  // An event without a trace does not start a new trace.
  if (!traces || parent === ROOT_CONTEXT) return await work();
  if (!internalSpans) return await context.with(parent, work);
  const kind = operation === 'send' ? SpanKind.PRODUCER : SpanKind.CONSUMER;
  const attributes = {
    [ATTR_MESSAGING_OPERATION_TYPE]: operation,
    [ATTR_WRIT_EVENT_ID]: eventId,
    ...(durable !== undefined && { [ATTR_MESSAGING_CONSUMER]: durable }),
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
