import {
  type DataPoint,
  InMemoryMetricExporter,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { ByteCache } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { createTelemetry, LabelCaps, METRICS, OTHER } from '../index.ts';

function metered() {
  const exporter = new InMemoryMetricExporter(1);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 60_000 });
  const telemetry = createTelemetry({
    service: 'execution-meter',
    logLevel: 'silent',
    metricReaders: [reader],
  });
  const points = async (name: string) => {
    await telemetry.flush();
    return (exporter.getMetrics().at(-1)?.scopeMetrics ?? [])
      .flatMap(({ metrics }) => metrics)
      .filter(({ descriptor }) => descriptor.name === name)
      .flatMap(({ dataPoints }): readonly DataPoint<unknown>[] => dataPoints)
      .map(({ value, attributes }) => ({ value, attributes }));
  };
  return { telemetry, points };
}

describe('metrics', () => {
  it('use the names and labels of the METRICS table (SYS-1)', async () => {
    const { telemetry, points } = metered();
    telemetry.metrics.count('cost', { 'writ.tenant': 'acme' }, 1_500);
    telemetry.metrics.count('cost', { 'writ.tenant': 'acme' }, 500);
    telemetry.metrics.observe('approvalsOpen', () => [{ value: 3 }]);
    telemetry.metrics.observe('agents', () =>
      Promise.reject(new Error('The store is unavailable.')),
    );
    expect(await points('writ.meter.cost')).toEqual([
      { value: 2_000, attributes: { 'writ.tenant': 'acme' } },
    ]);
    expect(await points('writ.approvals.open')).toEqual([{ value: 3, attributes: {} }]);
    expect(await points('nodejs.eventloop.utilization')).toHaveLength(1);
    await telemetry.shutdown();
  });

  it('never have more series than the cap, whatever values tenants and agents choose (SYS-6)', async () => {
    const { telemetry, points } = metered();
    for (let tenant = 0; tenant < 500; tenant += 1) {
      telemetry.metrics.count('runsStarted', { 'writ.tenant': `t${tenant}` });
      telemetry.metrics.count('runs', { 'writ.stop_reason': `tool_denied:t${tenant}` });
    }
    const started = await points('writ.runs.started');
    expect(started).toHaveLength(101);
    expect(started.at(-1)).toEqual({ value: 400, attributes: { 'writ.tenant': OTHER } });
    expect(await points('writ.runs.ended')).toEqual([
      { value: 500, attributes: { 'writ.stop_reason': 'tool_denied' } },
    ]);
    await telemetry.shutdown();
  });

  it('add up the counts of a gauge whose labels the cap combines (SYS-6)', async () => {
    const { telemetry, points } = metered();
    const tenants = Array.from({ length: 103 }, (_, tenant) => ({
      value: [3, 0, 4][tenant - 100] ?? 1,
      labels: { 'writ.tenant': `t${tenant}` },
    }));
    telemetry.metrics.observe('approvalsOpen', () => tenants);
    for (let read = 0; read < 2; read += 1) {
      const open = await points('writ.approvals.open');
      expect(open).toHaveLength(101);
      expect(open[0]).toEqual({ value: 1, attributes: { 'writ.tenant': 't0' } });
      expect(open.at(-1)).toEqual({ value: 7, attributes: { 'writ.tenant': OTHER } });
    }
    await telemetry.shutdown();
  });

  it('never add up the times of a gauge (SYS-6)', async () => {
    const { telemetry, points } = metered();
    const peers = Array.from({ length: 102 }, (_, peer) => ({
      value: 2,
      labels: { 'writ.peer': `p${peer}` },
    }));
    telemetry.metrics.observe('clockOffset', () => peers);
    expect((await points('writ.clock.offset')).at(-1)).toEqual({
      value: 2,
      attributes: { 'writ.peer': OTHER },
    });
    await telemetry.shutdown();
  });

  it('report bytes and entries of each cache of the process (SYS-1, CO-2)', async () => {
    const { telemetry, points } = metered();
    const cache = new ByteCache<string>({ name: 'observed', maxBytes: 10_000 });
    cache.set('a', 'A'.repeat(1_000));
    cache.set('b', 'B');
    const attributes = { 'writ.cache': 'observed' };
    expect(await points('writ.cache.bytes')).toContainEqual({ value: cache.bytes, attributes });
    expect(await points('writ.cache.entries')).toContainEqual({ value: 2, attributes });
    cache.clear();
    expect(await points('writ.cache.bytes')).toContainEqual({ value: 0, attributes });
    await telemetry.shutdown();
  });

  it('have no overhead without a collector', () => {
    const { metrics } = createTelemetry({ service: 'a', logLevel: 'silent' });
    expect(metrics.enabled).toBe(false);
    expect(() => metrics.count('cost')).not.toThrow();
  });

  it('have no label that names a run, an agent or a call, and no name twice (SYS-6)', () => {
    const rows = Object.values(METRICS);
    expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length);
    const labels = new Set(rows.flatMap((row): readonly string[] => row.labels));
    for (const label of labels) expect(label).not.toMatch(/_id$|\.agent|conversation/);
  });

  it('omit a label without a value', () => {
    expect(new LabelCaps().bound({ a: '1', b: undefined })).toEqual({ a: '1' });
  });
});
