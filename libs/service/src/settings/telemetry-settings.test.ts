import { describe, expect, it } from 'vitest';
import { readTelemetrySettings } from './telemetry-settings.ts';

const read = (env: Record<string, string>) => readTelemetrySettings(env, 'info');
const HERE = 'http://127.0.0.1:4317';

describe('readTelemetrySettings', () => {
  it('exports nothing without a collector', () => {
    expect(read({})).toEqual({ logLevel: 'info', sampleRatio: 1 });
    expect(
      read({ OTEL_EXPORTER_OTLP_ENDPOINT: HERE, OTEL_SDK_DISABLED: 'true' }),
    ).not.toHaveProperty('otlp');
  });

  it('exports all signals to one collector or each to its own (SYS-1)', () => {
    const grpc = { endpoint: HERE, protocol: 'grpc' };
    expect(read({ OTEL_EXPORTER_OTLP_ENDPOINT: HERE }).otlp).toEqual({
      traces: grpc,
      metrics: grpc,
      logs: grpc,
      metricIntervalMs: 60_000,
    });
    expect(
      read({
        OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318/',
        OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: HERE,
        OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'grpc',
        OTEL_LOGS_EXPORTER: 'none',
        OTEL_METRIC_EXPORT_INTERVAL: '5000',
      }).otlp,
    ).toEqual({
      traces: grpc,
      metrics: { endpoint: 'http://127.0.0.1:4318/v1/metrics', protocol: 'http/protobuf' },
      metricIntervalMs: 5_000,
    });
  });

  it('rejects an export interval that exceeds the longest delay of a timer (SYS-1)', () => {
    expect(() => read({ OTEL_METRIC_EXPORT_INTERVAL: '2073600000' })).not.toThrow();
    expect(() => read({ OTEL_METRIC_EXPORT_INTERVAL: '2160000000' })).toThrow(
      'OTEL_METRIC_EXPORT_INTERVAL',
    );
  });

  it('rejects an unsupported sampler and a ratio above one', () => {
    expect(() => read({ OTEL_TRACES_SAMPLER: 'always_off' })).toThrow('OTEL_TRACES_SAMPLER');
    expect(() => read({ OTEL_TRACES_SAMPLER_ARG: '2' })).toThrow('OTEL_TRACES_SAMPLER_ARG');
    expect(read({ OTEL_TRACES_SAMPLER_ARG: '0.25' }).sampleRatio).toBe(0.25);
  });
});
