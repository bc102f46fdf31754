import { newId } from '@writ/kernel';
import { loadExample } from '@writ/platform';
import { followRun, readHuman } from '@writ/platform/terminal';
import { createTelemetry, InMemorySpans, withSpan } from '@writ/telemetry';
import { startTestPlatform } from '@writ/testing/platform';
import { expect, it, onTestFinished } from 'vitest';

const SERVICES = [
  'agent-worker',
  'execution-meter',
  'spawn-budget',
  'supervisor',
  'tool-gateway',
  'writ-client',
];

/**
 * Names of the spans of internal work, which are not recorded by default: commits, events, key requests and ListTools.
 */
const INTERNAL =
  /^(commit|publish |process |writ\.identity\.|writ\.tool\.v1\.ToolGatewayService\/ListTools)/;

/** Runs the refund desk with a human approval; returns the run, its spans and those of the platform. */
async function tracedRun(env: Readonly<Record<string, string>> = {}) {
  const test = await startTestPlatform({ env });
  onTestFinished(() => test.close());
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
  // Stops the services, which ends all their spans.
  await test.platform.stop();
  await telemetry.shutdown();

  const spans = [...test.spans.spans(run.traceId), ...own.spans(run.traceId)];
  return { run, spans, all: test.spans.spans() };
}

function checkComplete({ run, spans, all }: Awaited<ReturnType<typeof tracedRun>>): void {
  const ids = new Set(spans.map((span) => span.spanId));
  const roots = spans.filter((span) => span.parentSpanId === undefined);
  const orphans = spans.filter(
    (span) => span.parentSpanId !== undefined && !ids.has(span.parentSpanId),
  );
  expect(roots.map((span) => span.name)).toEqual(['client']);
  expect(orphans.map((span) => `${span.service}: ${span.name}`)).toEqual([]);
  expect([...new Set(spans.map((span) => span.service))].sort()).toEqual(SERVICES);

  const runSpans = all.filter((span) => span.attributes['writ.run_id'] === run.runId);
  expect(runSpans.filter((span) => span.traceId !== run.traceId).map((span) => span.name)).toEqual(
    [],
  );
}

it('records a run with its human approval in one trace without orphans, and no internal work (SYS-1, SUP-5)', async () => {
  const traced = await tracedRun();
  checkComplete(traced);
  const { run, spans } = traced;
  const names = spans.map(({ name }) => name);
  expect(names.filter((name) => INTERNAL.test(name))).toEqual([]);
  // The trace of four steps; with internal work, it would have 187 spans.
  expect(names.length, names.sort().join(', ')).toBeLessThan(60);
  expect(names).toEqual(
    expect.arrayContaining(['invoke_agent refund-worker', 'execute_tool issue_refund', 'review']),
  );
  const waits = spans.filter(({ name }) => name === 'wait_for_approval');
  expect(waits).toMatchObject([
    {
      service: 'supervisor',
      attributes: {
        'writ.run_id': run.runId,
        'writ.approver': 'developer',
        'writ.approval_state': 'approved',
        'writ.tool': 'issue_refund',
      },
    },
  ]);
  const chats = spans.filter(({ name }) => name.startsWith('chat '));
  const cost = chats.reduce(
    (sum, { attributes }) => sum + Number(attributes['writ.cost_nano_usd']),
    0,
  );
  expect(BigInt(cost)).toBe(run.result?.usage?.costNanoUsd);
  for (const { attributes } of chats) {
    expect(attributes).toMatchObject({
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.response.id': expect.stringMatching(/^chatcmpl/),
      'server.address': '127.0.0.1',
      'server.port': expect.any(Number),
    });
  }
});

it('records internal work in the same trace when it is enabled (SYS-1)', async () => {
  const traced = await tracedRun({ WRIT_TRACE_INTERNALS: 'true' });
  checkComplete(traced);
  expect(traced.spans.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['commit', 'publish RUN_END', 'process RUN_END']),
  );
});

it('marks the agent of a run that did not succeed as failed with its stop reason (SYS-1)', async () => {
  const test = await startTestPlatform();
  onTestFinished(() => test.close());
  const { agent, goal } = loadExample('refund-desk');
  const { run } = await test.client.runs.startRun({
    requestId: newId('req'),
    agent,
    goal,
    model: 'sim-auto-1000',
    runBudget: { maxTokens: 0n },
  });
  const runId = run?.runId ?? '';
  await Array.fromAsync(test.client.runs.watchRun({ runId }));
  await test.platform.stop();
  const [invoked] = test.spans.spans().filter(({ name }) => name.startsWith('invoke_agent'));
  expect(invoked).toMatchObject({
    status: { code: 'error' },
    attributes: { 'error.type': 'budget_exhausted:tokens' },
  });
});

it('marks the agents of runs that end with a timeout, a block or an invalid action with the reason (SYS-1)', async () => {
  const test = await startTestPlatform();
  onTestFinished(() => test.close());
  const { agent, goal } = loadExample('refund-desk');
  const reasons = {
    'sim-llm-timeout': 'llm_timeout',
    'sim-early-final': 'supervisor_block:final_requires_context',
    'sim-bad-json': 'invalid_action:non_json',
  };
  const runs = new Map<string, string>();
  for (const [model, reason] of Object.entries(reasons)) {
    const request = { requestId: newId('req'), agent, goal, model };
    const { run } = await test.client.runs.startRun(request);
    runs.set(run?.runId ?? '', reason);
  }
  for (const runId of runs.keys()) await Array.fromAsync(test.client.runs.watchRun({ runId }));
  await test.platform.stop();
  for (const [runId, reason] of runs) {
    const invoked = test.spans
      .spans()
      .filter(
        ({ name, attributes }) =>
          name.startsWith('invoke_agent') && attributes['writ.run_id'] === runId,
      );
    expect(invoked).toMatchObject([
      { status: { code: 'error', message: reason }, attributes: { 'error.type': reason } },
    ]);
  }
});
