import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import type { WatchRunsResponse } from '@writ/contracts/writ/run/v1/run_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

const START = { agent: 'worker', goal: 'Do it.' };

let supervisor: SupervisorUnderTest;
beforeEach(async () => {
  supervisor = await SupervisorUnderTest.start({ config: { watchHeartbeatMs: 100 } });
});
afterEach(() => supervisor.close());

/** A watch of the runs of anna's tenant after its first heartbeat. */
async function watching() {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const stream = supervisor.runs().watchRuns({}, { signal: stop.signal });
  const messages = stream[Symbol.asyncIterator]();
  expect((await messages.next()).value).toMatchObject({ heartbeat: true });
  return messages;
}

/** The next messages until one matches. */
async function until(
  messages: AsyncIterator<WatchRunsResponse>,
  matches: (message: WatchRunsResponse) => boolean,
): Promise<WatchRunsResponse[]> {
  const seen: WatchRunsResponse[] = [];
  while (true) {
    const { value, done } = await messages.next();
    if (done) throw new Error('The watch has ended.');
    seen.push(value);
    if (matches(value)) return seen;
  }
}

it('streams runs of the tenant as they start and end, without their traces (PE-1, PE-2)', async () => {
  const messages = await watching();
  const { run: eveRun } = await supervisor.runs('eve').startRun({ requestId: 'r-0', ...START });
  const { run } = await supervisor.runs().startRun({ requestId: 'r-1', ...START });
  const runId = run?.runId ?? '';
  const started = await until(messages, (one) => one.run?.runId === runId);
  expect(started.at(-1)?.run).toMatchObject({ goal: 'Do it.', agent: { name: 'worker' } });
  await supervisor.fakes.called(AgentWorkerService.method.deliver, 2);
  await supervisor.runs().cancelRun({ requestId: 'c-1', runId });
  const ended = await until(messages, (one) => one.run?.state === RunState.CANCELLED);
  expect(ended.at(-1)?.run).toMatchObject({ runId, result: { stopReason: 'cancelled' } });
  const ids = [...started, ...ended].flatMap((one) => one.run?.runId ?? []);
  expect(ids).not.toContain(eveRun?.runId);
});

it('sends only heartbeats while no run changes (SYS-4)', async () => {
  const messages = await watching();
  await supervisor.runs().startRun({ requestId: 'r-1', ...START });
  await supervisor.fakes.called(AgentWorkerService.method.deliver);
  const running = (one: WatchRunsResponse) => one.run?.state === RunState.RUNNING;
  await until(messages, running);
  for (let heartbeats = 0; heartbeats < 3; heartbeats += 1) {
    const [next] = await until(messages, () => true);
    expect(next).toMatchObject({ heartbeat: true });
  }
});

it('is also served as JSON lines (SYS-2)', async () => {
  const stop = new AbortController();
  const response = await fetch(`http://${supervisor.service.edgeAddress}/v1/runs/events`, {
    headers: { authorization: `Bearer ${supervisor.apiKey('anna')}` },
    signal: stop.signal,
  });
  await supervisor.runs().startRun({ requestId: 'r-1', ...START });
  let text = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.includes('"run":')) break;
  }
  expect(text).toMatch(/^\{"heartbeat":true\}\n/);
});
