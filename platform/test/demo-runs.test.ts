import type { WritClient } from '@writ/client';
import { createTelemetry } from '@writ/telemetry';
import { startTestPlatform } from '@writ/testing/platform';
import { expect, it, onTestFinished } from 'vitest';
import { createDemoRuns } from '../src/demo-runs.ts';
import { loadExample } from '../src/index.ts';

it('finds the unfinished runs of every page (PE-2)', async () => {
  const { client, close } = await startTestPlatform();
  onTestFinished(() => close());
  const started: string[] = [];
  for (const requestId of ['r-1', 'r-2', 'r-3']) {
    const start = {
      requestId,
      agent: 'refund-worker',
      goal: 'Refund 7.',
      model: 'sim-escalate-1200',
    };
    started.push((await client.runs.startRun(start)).run?.runId ?? '');
  }
  // Pages of one run, in place of many runs.
  const listRuns: WritClient['runs']['listRuns'] = (request, options) =>
    client.runs.listRuns({ ...request, pageSize: 1 }, options);
  const demo = createDemoRuns({
    client: { ...client, runs: { ...client.runs, listRuns } },
    starter: client,
    simulated: client,
    example: loadExample('refund-desk'),
    agent: 'refund-worker',
    model: undefined,
    tracer: createTelemetry({ service: 'test', logLevel: 'silent' }).tracer,
  });
  const { demo: own, others } = await demo.unfinished();
  expect(own).toEqual([]);
  expect(others.map(({ runId }) => runId)).toEqual(started);
});
