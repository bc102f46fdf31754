import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { publishHook } from './publish-hook.ts';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

const START = { requestId: 'req-1', agent: 'worker', goal: 'Do it.' };

describe('watching a run', () => {
  let supervisor: SupervisorUnderTest;
  let runId: string;
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start();
    const { run } = await supervisor.runs().startRun(START);
    runId = run?.runId ?? '';
    await supervisor.fakes.called(AgentWorkerService.method.deliver);
  });
  afterEach(() => supervisor.close());

  const publish = (eventId: string, ofRun = runId) =>
    publishHook(supervisor, { eventId, type: 'STEP_START', emitter: 'agent-worker', runId: ofRun });

  const cancel = () => supervisor.runs().cancelRun({ requestId: 'cancel-1', runId });

  async function watch(after = 0n): Promise<RunEvent[]> {
    const events = await Array.fromAsync(
      supervisor.runs().watchRun({ runId, afterSequence: after }),
    );
    return events.flatMap(({ event }) => (event ? [event] : []));
  }

  it('replays and then follows live without gaps or duplicates, and ends with the result (HK-1)', async () => {
    const watches: Promise<RunEvent[]>[] = [];
    for (let index = 0; index < 30; index += 1) {
      await publish(`evt_${index}`);
      // A duplicate delivery of an event.
      await publish(`evt_${index}`);
      if (index % 10 === 0) watches.push(watch());
    }
    await cancel();
    const all = await watch();
    // RUN_START, 30 steps, RUN_END and the result.
    expect(all.map(({ sequence }) => Number(sequence))).toEqual(
      Array.from({ length: 33 }, (_, i) => i + 1),
    );
    expect(all.slice(-2).map(({ entry }) => entry.case)).toEqual(['hook', 'result']);
    for (const seen of await Promise.all(watches)) expect(seen).toEqual(all);
  });

  it('starts after any sequence number, and ends at once when the run has ended', async () => {
    await cancel();
    const all = await watch();
    expect(await watch(1n)).toEqual(all.slice(1));
    expect(await watch(BigInt(all.length))).toEqual([]);
    expect(await watch(1000n)).toEqual([]);
  });

  it('receives events that are published after the run has ended', async () => {
    await cancel();
    const all = await watch();
    await publish('evt_late');
    const late = await watch(BigInt(all.length));
    expect(late.map(({ sequence }) => Number(sequence))).toEqual([all.length + 1]);
  });

  it('drops events of unknown runs', async () => {
    await publish('evt_unknown', 'run_unknown');
    await publish('evt_known');
    await cancel();
    expect(await watch()).toHaveLength(4);
  });

  it('starts and watches in one RPC, and a retry watches the same run', async () => {
    await cancel();
    const events = await Array.fromAsync(supervisor.runs().runAgent({ start: START }));
    expect(events.at(-1)).toMatchObject({ runId, event: { entry: { case: 'result' } } });
  });

  it('ends when the watcher cancels and when the service stops', async () => {
    const abort = new AbortController();
    const watching = Array.fromAsync(
      supervisor.runs().watchRun({ runId }, { signal: abort.signal }),
    );
    abort.abort();
    await expect(watching).rejects.toThrow();
    const stopped = expect(watch()).rejects.toThrow();
    await supervisor.stop();
    await stopped;
  });
});
