import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { createAgent } from '@writ/platform';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { expect, it, onTestFinished } from 'vitest';
import { APPROVE_ALL } from './approve-all.ts';

const person = createAgent({ name: 'person', kind: 'user-proxy' });
/** Waits for a timer and a signal at the same time. */
const listener = createAgent({
  name: 'listener',
  kind: 'custom',
  async run(operations) {
    await operations.all<unknown>([
      (branch) => branch.sleepUntilSignal('go'),
      (branch) => branch.sleep(1),
    ]);
    return 'Received.';
  },
});
const lead = createAgent({
  name: 'lead',
  kind: 'flow',
  sub_agents: [{ name: 'person' }, { name: 'listener' }],
  options: { steps: [{ parallel: ['person', 'listener'] }] },
});

function dataFolder(): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-wait-spans-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  return dataDir;
}

async function start(dataDir: string): Promise<TestPlatform> {
  const test = await startTestPlatform({
    dataDir,
    agents: [lead, person, listener],
    files: { WRIT_POLICY_FILE: APPROVE_ALL },
  });
  onTestFinished(() => test.close());
  return test;
}

const waitsOf = (...tests: readonly TestPlatform[]) =>
  tests.flatMap(({ spans }) => spans.spans().filter(({ name }) => name.startsWith('wait_for_')));

/**
 * Starts a run and waits until only the waits for the person and the signal remain; returns the run id, the question
 * and a function that returns the instance of an agent by name.
 */
async function startRun({ client: { runs }, spans }: TestPlatform) {
  const request = { requestId: 'r-1', agent: 'lead', goal: 'Which color?' };
  const runId = (await runs.startRun(request)).run?.runId ?? '';
  const instances = new Map<string, string>();
  let question = '';
  for await (const { event } of runs.watchRun({ runId })) {
    if (event?.entry.case !== 'hook') continue;
    const { type, agent, waitingFor } = event.entry.value;
    if (type === HookEventType.RUN_START) instances.set(agent?.name ?? '', agent?.instance ?? '');
    if (type === HookEventType.STEP_START && agent?.name === 'person') question = waitingFor;
    if (instances.size === 3 && question !== '') break;
  }
  await expect
    .poll(() => spans.spans().map(({ name }) => name))
    .toEqual(expect.arrayContaining(['wait_for_timer']));
  const state = async () => (await runs.getRun({ runId })).run?.state;
  await expect.poll(state).toBe(RunState.WAITING_FOR_INPUT);
  const instanceOf = (name: string) => instances.get(name) ?? '';
  return { runId, question, instanceOf };
}

it('waits for a person, a signal and a timer are spans of the one trace of a run, also across a restart (SYS-1, AG-7)', async () => {
  const dataDir = dataFolder();
  const first = await start(dataDir);
  const { runId, question, instanceOf } = await startRun(first);
  await first.close();
  const stoppedAt = new Date();
  const second = await start(dataDir);
  const { runs } = second.client;
  const answer = { runId, agentInstance: instanceOf('person'), name: question };
  await runs.signalRun({ ...answer, requestId: 's-1', payloadJson: '{"text":"Blue."}' });
  const go = { runId, agentInstance: instanceOf('listener'), name: 'go' };
  await runs.signalRun({ ...go, requestId: 's-2', payloadJson: '{}' });
  await Array.fromAsync(runs.watchRun({ runId }));
  expect((await runs.getRun({ runId })).run?.result?.answer).toBe(
    'person: Blue.\n\nlistener: Received.',
  );
  await second.close();

  const waits = waitsOf(first, second).toSorted((a, b) => a.name.localeCompare(b.name));
  const of = (name: string) => ({
    'writ.tenant': 'default',
    'writ.run_id': runId,
    'writ.agent': instanceOf(name),
  });
  expect(waits.map(({ name, service, attributes }) => ({ name, service, attributes }))).toEqual([
    {
      name: 'wait_for_input',
      service: 'agent-worker',
      attributes: { ...of('person'), 'writ.waiting_for': question, 'writ.sender': 'developer' },
    },
    {
      name: 'wait_for_signal',
      service: 'agent-worker',
      attributes: { ...of('listener'), 'writ.waiting_for': 'go', 'writ.sender': 'developer' },
    },
    {
      name: 'wait_for_timer',
      service: 'agent-worker',
      attributes: {
        ...of('listener'),
        'writ.waiting_for': expect.stringMatching(/^timer:/),
      },
    },
  ]);
  const [input, signal, timer] = waits;
  // Both waits lasted across the restart, and the timer did not end the wait for the signal.
  for (const wait of [input, signal]) {
    expect(wait?.startedAt.getTime()).toBeLessThan(stoppedAt.getTime());
    const endedAt = (wait?.startedAt.getTime() ?? 0) + (wait?.durationMs ?? 0);
    expect(endedAt).toBeGreaterThan(stoppedAt.getTime());
  }
  expect(signal?.startedAt).toEqual(timer?.startedAt);
  const spans = [...first.spans.spans(), ...second.spans.spans()];
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const ofRun = spans.filter(({ attributes }) => attributes['writ.run_id'] === runId);
  expect(new Set(ofRun.map(({ traceId }) => traceId))).toEqual(new Set([input?.traceId]));
  expect(waits.filter(({ parentSpanId = '' }) => !ids.has(parentSpanId))).toEqual([]);
});

it('a wait that a cancellation ends is a span with the stop reason (SYS-1, SUP-8)', async () => {
  const test = await start(dataFolder());
  const { runId, question } = await startRun(test);
  await test.client.runs.cancelRun({ runId, requestId: 'c-1' });
  await Array.fromAsync(test.client.runs.watchRun({ runId }));
  await test.close();
  const waits = waitsOf(test).map(({ attributes }) => [
    attributes['writ.waiting_for'],
    attributes['writ.stop_reason'],
    attributes['writ.sender'],
  ]);
  expect(waits).toEqual(
    expect.arrayContaining([
      [question, 'cancelled', undefined],
      ['go', 'cancelled', undefined],
    ]),
  );
});
