import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createTelemetry, type OtlpTargets, type Telemetry, withSpan } from './index.ts';

interface Lines {
  readonly telemetry: Telemetry;
  readonly lines: () => Record<string, unknown>[];
}

function exportingTo(otlp: OtlpTargets): Lines {
  const written: string[] = [];
  const telemetry = createTelemetry({
    service: 'supervisor',
    logStream: { write: (line: string) => void written.push(line) },
    otlp,
  });
  return { telemetry, lines: () => written.map((line) => JSON.parse(line)) };
}

function everySignal(endpoint: string): OtlpTargets {
  const target = { endpoint, protocol: 'grpc' } as const;
  return { traces: target, metrics: target, logs: target };
}

describe('the collector', () => {
  it('may be down: one warning per signal, and neither flush nor shutdown rejects (SYS-4)', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => closed.once('listening', resolve));
    const address = closed.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    await new Promise((resolve) => closed.close(resolve));
    const { telemetry, lines } = exportingTo(everySignal(`http://127.0.0.1:${port}`));
    await withSpan(telemetry.tracer, 'x', {}, () => telemetry.log.info('x'));
    await telemetry.flush();
    await withSpan(telemetry.tracer, 'y', {}, () => telemetry.log.info('y'));
    await telemetry.shutdown();
    await telemetry.shutdown();
    const warnings = lines().filter(({ level }) => level === 'warn');
    expect(warnings.map(({ signal }) => signal).sort()).toEqual(['logs', 'metrics', 'traces']);
  });

  it('may accept connections and never respond: a shutdown waits at most for its timeout', async () => {
    const mute = createServer(() => undefined).listen(0, '127.0.0.1');
    await new Promise((resolve) => mute.once('listening', resolve));
    const address = mute.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const { telemetry } = exportingTo(everySignal(`http://127.0.0.1:${port}`));
    await withSpan(telemetry.tracer, 'x', {}, () => telemetry.log.info('x'));
    const started = performance.now();
    await telemetry.shutdown();
    // Twice the timeout, with a margin for a busy machine.
    expect(performance.now() - started).toBeLessThan(30_000);
    mute.close();
  });

  it('is logged with its host but without its password when it is unavailable (SYS-1)', async () => {
    const endpoint = 'http://writ:hunter2@127.0.0.1:1/v1/traces?key=hunter2';
    const otlp = { traces: { endpoint, protocol: 'http/protobuf' } } as const;
    const { telemetry, lines } = exportingTo(otlp);
    await withSpan(telemetry.tracer, 'x', {}, async () => undefined);
    await telemetry.shutdown();
    expect(lines()).toMatchObject([{ endpoint: '127.0.0.1:1', signal: 'traces' }]);
    expect(JSON.stringify(lines())).not.toContain('hunter2');
  });
});
