import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { newId } from '@writ/kernel';
import { METRICS } from '@writ/telemetry';
import { generateTestCertificates } from '@writ/testing/certificates';
import { type OtlpReceiver, startOtlpReceiver } from '@writ/testing/otlp';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { approveEdited } from '../approve-edited.ts';

const SERVICES = ['agent-worker', 'execution-meter', 'spawn-budget', 'supervisor', 'tool-gateway'];
/** Metrics that a successful run does not record. */
const UNSEEN = new Set([METRICS.impossibleUsage, METRICS.slotChanges]);
/** Counters of events that have not occurred; they are exported with the value 0. */
const RARE = [
  METRICS.budgetRefusals,
  METRICS.nearBudget,
  METRICS.debts,
  METRICS.halts,
  METRICS.guardrails,
];

/** Metrics that are read from stores and the process at each export. */
const GAUGES = Object.values(METRICS).flatMap(({ kind, name }) => (kind === 'gauge' ? [name] : []));

/** Starts a run, answers its approval and waits for its end. */
async function runOnce(
  { client }: TestPlatform,
  model: string,
  whileWaiting?: () => Promise<void>,
): Promise<string> {
  const { run } = await client.runs.startRun({
    requestId: newId('req'),
    agent: 'refund-worker',
    goal: 'Refund it.',
    model,
  });
  const runId = run?.runId ?? '';
  if (model === 'sim-escalate-1200') {
    const approvalId = await vi.waitFor(async () => {
      const { approvals } = await client.approvals.listApprovals({ runId });
      expect(approvals).toHaveLength(1);
      return approvals[0]?.approvalId ?? '';
    });
    await whileWaiting?.();
    await approveEdited({ client }, approvalId, { amount_usd: 800 });
  }
  await vi.waitFor(async () => {
    const { run: now } = await client.runs.getRun({ runId });
    expect(now?.result?.status, now?.result?.stopReason).toBe(RunStatus.OK);
  });
  return runId;
}

describe('a platform with a collector', () => {
  const dir = mkdtempSync(join(tmpdir(), 'writ-telemetry-'));
  let receiver: OtlpReceiver;
  let test: TestPlatform;

  beforeAll(async () => {
    receiver = await startOtlpReceiver();
    const { ca, certFile, keyFile } = await generateTestCertificates(join(dir, 'tls'));
    test = await startTestPlatform({
      ca,
      env: {
        WRIT_EDGE_TLS_CERT_FILE: certFile('edge'),
        WRIT_EDGE_TLS_KEY_FILE: keyFile('edge'),
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.httpUrl,
        OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
        OTEL_METRIC_EXPORT_INTERVAL: '500',
        // gRPC connections record additional metrics.
        WRIT_LOOPBACK: 'grpc',
      },
    });
    await runOnce(test, 'sim-escalate-1200', () =>
      vi.waitFor(() => {
        const seen = new Set(receiver.points().map(({ metric }) => metric));
        expect(GAUGES.filter((name) => !seen.has(name))).toEqual([]);
        const open = receiver
          .points()
          .filter(({ metric }) => metric === METRICS.approvalsOpen.name);
        expect(open.map(({ value }) => value)).toContain(1);
      }),
    );
    await vi.waitFor(() => {
      const open = receiver.points().filter(({ metric }) => metric === METRICS.approvalsOpen.name);
      expect(open.at(-1)?.value).toBe(0);
    });
    await test.platform.stop();
  });
  afterAll(async () => {
    await test?.close();
    await receiver?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  it('records every metric of the table that a run affects (SYS-1)', () => {
    const seen = new Set(receiver.points().map(({ metric }) => metric));
    const expected = Object.values(METRICS)
      .filter((row) => !UNSEEN.has(row as never))
      .map(({ name }) => name);
    expect(expected.filter((name) => !seen.has(name))).toEqual([]);
    const rows = new Map<string, { labels: readonly string[] }>(
      Object.values(METRICS).map((row) => [row.name, row]),
    );
    for (const { metric, attributes } of receiver.points()) {
      expect(rows.get(metric)?.labels, metric).toEqual(
        expect.arrayContaining(Object.keys(attributes)),
      );
    }
  });

  it('exports rare counters and open approvals with 0, so that the first occurrence is an increase (SYS-1)', () => {
    const points = receiver.points();
    for (const { name, labels } of RARE) {
      const own = points.filter(({ metric }) => metric === name);
      expect(new Set(own.map(({ value }) => value)), name).toEqual(new Set([0]));
      for (const { attributes } of own)
        expect(Object.keys(attributes).sort(), name).toEqual([...labels].sort());
    }
    const open = points.filter(({ metric }) => metric === METRICS.approvalsOpen.name);
    expect(open.map(({ value }) => value)).toEqual(expect.arrayContaining([0, 1]));
    expect(open.at(-1)).toMatchObject({ value: 0, attributes: { 'writ.tenant': 'default' } });
  });

  it('labels each metric with its service, although all services share a process (SYS-1)', () => {
    const of = (metric: string) => [
      ...new Set(
        receiver
          .points()
          .filter((point) => point.metric === metric)
          .map(({ service }) => service),
      ),
    ];
    expect(of('writ.store.commit.size').sort()).toEqual(['agent-proxy', ...SERVICES]);
    expect(of('writ.reviews')).toEqual(['supervisor']);
    expect(of('gen_ai.client.token.usage')).toEqual(['execution-meter']);
    const costs = receiver.points().filter(({ metric }) => metric === 'writ.meter.cost');
    expect(costs.at(-1)?.attributes).toMatchObject({ 'writ.tenant': 'default' });
    expect(costs.at(-1)?.value).toBeGreaterThan(0);
  });
});

describe('a platform with a sampling ratio of 0', () => {
  let test: TestPlatform;

  beforeAll(async () => {
    test = await startTestPlatform({ env: { OTEL_TRACES_SAMPLER_ARG: '0' } });
  });
  afterAll(() => test?.close());

  it('completes runs and exports no span (SYS-1)', async () => {
    await runOnce(test, 'sim-auto-1000');
    await runOnce(test, 'sim-escalate-1200');
    await test.platform.stop();
    expect(test.spans.spans()).toEqual([]);
  });
});
