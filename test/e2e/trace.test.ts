import { newId } from '@writ/kernel';
import { loadExample } from '@writ/platform';
import { followRun, readHuman } from '@writ/platform/console';
import { createTelemetry, InMemorySpans, withSpan } from '@writ/telemetry';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, expect, it } from 'vitest';

const SERVICES = [
  'agent-worker',
  'execution-meter',
  'spawn-budget',
  'supervisor',
  'tool-gateway',
  'writ-client',
];

let test: TestPlatform;

beforeAll(async () => {
  test = await startTestPlatform();
});
afterAll(() => test.close());

it('records a run with its human approval in one trace without orphans (SYS-1, SUP-5)', async () => {
  const own = new InMemorySpans();
  const telemetry = createTelemetry({
    service: 'writ-client',
    logLevel: 'silent',
    spanProcessors: [own],
  });
  const { goal, agent } = loadExample('refund-desk');
  const human = readHuman('cap:800', () => {
    throw new Error('The test does not expect a question.');
  });
  const run = await withSpan(telemetry.tracer, 'client', {}, async () => {
    const started = await test.client.runs.startRun({
      requestId: newId('req'),
      agent,
      goal,
      model: 'sim-escalate-1200',
    });
    return await followRun(test.client, started.run?.runId ?? '', human, {
      onEvent: () => undefined,
      onQuestion: () => undefined,
      onRefusedAnswer: () => undefined,
    });
  });
  // A stopped service has ended every span.
  await test.platform.stop();
  await telemetry.shutdown();

  const spans = [...test.spans.spans(run.traceId), ...own.spans(run.traceId)];
  const ids = new Set(spans.map((span) => span.spanId));
  const roots = spans.filter((span) => span.parentSpanId === undefined);
  const orphans = spans.filter(
    (span) => span.parentSpanId !== undefined && !ids.has(span.parentSpanId),
  );
  expect(roots.map((span) => span.name)).toEqual(['client']);
  expect(orphans.map((span) => `${span.service}: ${span.name}`)).toEqual([]);
  expect([...new Set(spans.map((span) => span.service))].sort()).toEqual(SERVICES);

  const runSpans = test.spans
    .spans()
    .filter((span) => span.attributes['writ.run_id'] === run.runId);
  expect(runSpans.filter((span) => span.traceId !== run.traceId).map((span) => span.name)).toEqual(
    [],
  );
  expect(spans.map((span) => span.name)).toEqual(
    expect.arrayContaining([
      'invoke_agent refund-worker',
      expect.stringMatching(/^chat /),
      'execute_tool issue_refund',
      'review',
      'commit',
      'publish RUN_END',
      'process RUN_END',
    ]),
  );
});
