import { type OtlpReceiver, startOtlpReceiver } from '@writ/testing/otlp';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createTelemetry, type Observation, type OtlpTarget, withSpan } from '../index.ts';

let receiver: OtlpReceiver;

beforeEach(async () => {
  receiver = await startOtlpReceiver();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await receiver.close();
});

const protocols: readonly [OtlpTarget['protocol'], (signal: string) => string][] = [
  ['grpc', () => receiver.grpcUrl],
  ['http/protobuf', (signal) => `${receiver.httpUrl}/v1/${signal}`],
];

describe('a collector', () => {
  it.each(protocols)(
    'receives traces, metrics and logs of every service over %s (SYS-1)',
    async (protocol, url) => {
      // OpenTelemetry's exporters read this variable.
      vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', 'x-key=abc');
      const written: string[] = [];
      const make = (service: string) =>
        createTelemetry({
          service,
          resource: 'deployment.environment.name=test',
          logStream: { write: (line) => void written.push(line) },
          otlp: {
            traces: { endpoint: url('traces'), protocol },
            metrics: { endpoint: url('metrics'), protocol },
            logs: { endpoint: url('logs'), protocol },
          },
        });
      const meter = make('execution-meter');
      const gateway = make('tool-gateway');
      const ids = await withSpan(meter.tracer, 'outer', {}, () =>
        withSpan(gateway.tracer, 'inner', {}, (span) => {
          gateway.log.warn(
            { token: 'hunter2', run_id: 'run_1', nested: { key: 'hunter2' } },
            'tool failed',
          );
          gateway.metrics.count('toolCalls', { 'writ.tool': 'issue_refund' });
          return span.spanContext();
        }),
      );
      meter.metrics.count('cost', { 'writ.tenant': 'acme' }, 7);
      await Promise.all([meter.shutdown(), gateway.shutdown()]);

      expect(receiver.headers()).toMatchObject({ 'x-key': 'abc' });
      expect(
        receiver
          .spans()
          .map(({ service, name }) => `${service}: ${name}`)
          .sort(),
      ).toEqual(['execution-meter: outer', 'tool-gateway: inner']);
      expect(receiver.spans()[0]?.resource).toMatchObject({
        'service.namespace': 'writ',
        'deployment.environment.name': 'test',
      });
      expect(receiver.points()).toEqual(
        expect.arrayContaining([
          expect.objectContaining({
            service: 'execution-meter',
            metric: 'writ.meter.cost',
            value: 7,
          }),
          expect.objectContaining({ service: 'tool-gateway', metric: 'writ.tool.calls', value: 1 }),
        ]),
      );
      expect(receiver.logs()).toEqual([
        {
          service: 'tool-gateway',
          severity: 'WARN',
          body: 'tool failed',
          attributes: { run_id: 'run_1', token: '[redacted]', nested: { key: '[redacted]' } },
          traceId: ids.traceId,
          spanId: ids.spanId,
        },
      ]);
      expect(written).toHaveLength(1);
    },
  );

  it.each(protocols)(
    'receives over %s only the values that the last read of a gauge returned (SYS-1)',
    async (protocol, url) => {
      const telemetry = createTelemetry({
        service: 'spawn-budget',
        logLevel: 'silent',
        otlp: { metrics: { endpoint: url('metrics'), protocol } },
      });
      const reads: (() => Observation[])[] = [
        () => [
          { value: 3, labels: { 'writ.state': 'holder' } },
          { value: 1, labels: { 'writ.state': 'paused' } },
        ],
        () => [{ value: 9, labels: { 'writ.state': 'waiting' } }],
        () => {
          throw new Error('The store is unavailable.');
        },
        () => [{ value: 3, labels: { 'writ.state': 'holder' } }],
      ];
      telemetry.metrics.observe('slots', () => reads.shift()?.() ?? []);
      const exported: unknown[] = [];
      for (let read = 0; read < 5; read += 1) {
        const seen = receiver.points().length;
        telemetry.metrics.count('slotChanges');
        await telemetry.flush();
        exported.push(
          receiver
            .points()
            .slice(seen)
            .filter(({ metric }) => metric === 'writ.slots' || metric === 'writ.slots.changes')
            .map(({ value, attributes }) => [attributes['writ.state'] ?? 'changes', value]),
        );
      }
      expect(exported).toEqual([
        [
          ['holder', 3],
          ['paused', 1],
          ['changes', 1],
        ],
        [
          ['waiting', 9],
          ['changes', 2],
        ],
        [['changes', 3]],
        [
          ['holder', 3],
          ['changes', 4],
        ],
        [['changes', 5]],
      ]);
      await telemetry.shutdown();
    },
  );
});
