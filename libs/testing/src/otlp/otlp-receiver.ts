import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Metadata, Server, ServerCredentials, type ServerUnaryCall } from '@grpc/grpc-js';
import {
  exportMethod,
  type LogExport,
  type MetricExport,
  otlpServices,
  plain,
  plainValue,
  type Signal,
  type TraceExport,
} from './contracts.ts';

/** One exported span. */
export interface ReceivedSpan {
  readonly service: string;
  /** Resource attributes of the exporting process. */
  readonly resource: Readonly<Record<string, unknown>>;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root span. */
  readonly parentSpanId: string;
  readonly name: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  /** Microseconds since the epoch. */
  readonly startedAt: number;
  readonly durationUs: number;
  readonly failed: boolean;
}

/**
 * One exported data point of one metric series. Every export adds a point for each exported series; the receiver keeps
 * the points in the order of their export, the oldest first.
 */
export interface ReceivedPoint {
  readonly service: string;
  readonly metric: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** The value of a sum or gauge; the count of a histogram. */
  readonly value: number;
}

/** One exported log record. */
export interface ReceivedLog {
  readonly service: string;
  readonly severity: string;
  readonly body: unknown;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Empty for a record outside a span. */
  readonly traceId: string;
  readonly spanId: string;
}

/** An OTLP collector that keeps every export in memory; it accepts gRPC and HTTP. */
export interface OtlpReceiver {
  readonly grpcUrl: string;
  readonly httpUrl: string;
  spans(): readonly ReceivedSpan[];
  points(): readonly ReceivedPoint[];
  logs(): readonly ReceivedLog[];
  /** Every export request, decoded but otherwise unchanged. */
  exports(): readonly unknown[];
  /** The headers of the latest export. */
  headers(): Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Starts an OTLP collector on free loopback ports (SYS-1). */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const services = otlpServices();
  const spans: ReceivedSpan[] = [];
  const points: ReceivedPoint[] = [];
  const logs: ReceivedLog[] = [];
  const exports: unknown[] = [];
  let headers: Record<string, string> = {};
  const record = (signal: Signal, message: unknown): void => {
    exports.push(message);
    if (signal === 'traces') spans.push(...readSpans(message as TraceExport));
    if (signal === 'metrics') points.push(...readPoints(message as MetricExport));
    if (signal === 'logs') logs.push(...readLogs(message as LogExport));
  };
  const grpc = new Server({ 'grpc.max_receive_message_length': -1 });
  for (const signal of ['traces', 'metrics', 'logs'] as const) {
    grpc.addService(services[signal], {
      Export: (call: ServerUnaryCall<unknown, object>, answer: (e: null, a: object) => void) => {
        headers = readMetadata(call.metadata);
        record(signal, call.request);
        answer(null, {});
      },
    });
  }
  const http = createServer((request, response) => {
    headers = readHeaders(request);
    void handlePost(request, response, (signal, bytes) => {
      record(signal, exportMethod(services[signal]).requestDeserialize(bytes));
    });
  }).listen(0, '127.0.0.1');
  await once(http, 'listening');
  const port = await new Promise<number>((resolve, reject) => {
    grpc.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return {
    grpcUrl: `http://127.0.0.1:${port}`,
    httpUrl: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    spans: () => [...spans],
    points: () => [...points],
    logs: () => [...logs],
    exports: () => [...exports],
    headers: () => headers,
    close: async () => {
      grpc.forceShutdown();
      http.closeAllConnections();
      http.close();
      await once(http, 'close');
    },
  };
}

async function handlePost(
  request: IncomingMessage,
  response: ServerResponse,
  record: (signal: Signal, bytes: Buffer) => void,
): Promise<void> {
  const signal = /^\/v1\/(traces|metrics|logs)$/.exec(request.url ?? '')?.[1];
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  if (signal === undefined) {
    response.writeHead(404).end();
    return;
  }
  record(signal as Signal, Buffer.concat(chunks));
  response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
}

function readSpans({ resourceSpans }: TraceExport): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const attributes = plain(resource.attributes);
    return scopeSpans
      .flatMap((scope) => scope.spans)
      .map((span) => ({
        service: String(attributes['service.name']),
        resource: attributes,
        traceId: span.traceId.toString('hex'),
        spanId: span.spanId.toString('hex'),
        parentSpanId: span.parentSpanId.toString('hex'),
        name: span.name,
        attributes: plain(span.attributes),
        links: span.links.map(({ traceId, spanId }) => ({
          traceId: traceId.toString('hex'),
          spanId: spanId.toString('hex'),
        })),
        startedAt: Number(BigInt(span.startTimeUnixNano) / 1_000n),
        durationUs: Number(
          (BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1_000n,
        ),
        failed: span.status?.code === 2,
      }));
  });
}

function readPoints({ resourceMetrics }: MetricExport): ReceivedPoint[] {
  return resourceMetrics.flatMap(({ resource, scopeMetrics }) => {
    const service = String(plain(resource.attributes)['service.name']);
    return scopeMetrics
      .flatMap(({ metrics }) => metrics)
      .flatMap(({ name, gauge, sum, histogram }) =>
        ((gauge ?? sum ?? histogram)?.dataPoints ?? []).map((point) => ({
          service,
          metric: name,
          attributes: plain(point.attributes),
          value: Number(point.count ?? point.asInt ?? point.asDouble ?? Number.NaN),
        })),
      );
  });
}

function readLogs({ resourceLogs }: LogExport): ReceivedLog[] {
  return resourceLogs.flatMap(({ resource, scopeLogs }) => {
    const service = String(plain(resource.attributes)['service.name']);
    return scopeLogs
      .flatMap(({ logRecords }) => logRecords)
      .map((record) => ({
        service,
        severity: record.severityText,
        body: plainValue(record.body),
        attributes: plain(record.attributes),
        traceId: record.traceId.toString('hex'),
        spanId: record.spanId.toString('hex'),
      }));
  });
}

function readMetadata(metadata: Metadata): Record<string, string> {
  return Object.fromEntries(
    Object.entries(metadata.getMap()).map(([key, value]) => [key, String(value)]),
  );
}

function readHeaders({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([key, value]) => [key, String(value)]));
}
