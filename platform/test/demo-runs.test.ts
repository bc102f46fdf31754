import { create } from '@bufbuild/protobuf';
import type { WritClient } from '@writ/client';
import { RejectSchema } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { createTelemetry } from '@writ/telemetry';
import { startTestPlatform } from '@writ/testing/platform';
import { expect, it, onTestFinished } from 'vitest';
import { createDemoRuns } from '../src/demo-runs.ts';
import { loadExample, openSession } from '../src/index.ts';
import { readHuman } from '../src/terminal/index.ts';
import { tempFolder } from './program.ts';

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
  // With pages of one run, three runs are several pages.
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
    startTime: new Date(),
  });
  const { demo: own, others } = await demo.unfinished();
  expect(own).toEqual([]);
  expect(others.map(({ runId }) => runId)).toEqual(started);
});

it('lists a resumed run of the demo that has ended since the start as unfinished (PE-2, SYS-5)', async () => {
  const dataDir = tempFolder();
  const example = loadExample('refund-desk');
  const open = () =>
    openSession(
      { WRIT_LOG_LEVEL: 'silent' },
      { example, script: undefined, dataDir, freePorts: true },
    );
  const fail = () => {
    throw new Error('The test does not expect an answer.');
  };
  const follower = { onStart: () => undefined, onEvent: () => undefined, onRefusedAnswer: fail };
  const first = await open();
  const stopped = first.runJob(readHuman('approve', fail), {
    ...follower,
    onQuestion: () => {
      throw new Error('Stopped at the question.');
    },
  });
  await expect(stopped).rejects.toThrow('Stopped at the question.');
  await first.close();

  const second = await open();
  const { approvals } = await second.client.approvals.listApprovals({});
  await second.client.approvals.decideApproval({
    requestId: 'decision',
    approvalId: approvals[0]?.approvalId ?? '',
    answer: { case: 'reject', value: create(RejectSchema) },
  });
  const { runs } = await second.client.runs.listRuns({});
  for await (const _ of second.client.runs.watchRun({ runId: runs[0]?.runId ?? '' }));
  const left = await second.unfinished();
  expect(left.demo.map(({ runId }) => runId)).toEqual(runs.map(({ runId }) => runId));
  expect(left.others).toEqual([]);
  await second.close();

  const third = await open();
  expect(await third.unfinished()).toEqual({ demo: [], others: [] });
  await third.close();
});
