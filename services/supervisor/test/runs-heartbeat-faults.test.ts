import { createWritClient } from '@writ/client';
import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { type FaultProxy, startFaultProxy } from '@writ/testing/faults';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { publishHook } from './publish-hook.ts';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

const HEARTBEAT_MS = 100;
/** Longer than a busy machine takes to serve a connection. */
const SILENCE_MS = 2_500;
const START = { requestId: 'req-1', agent: 'worker', goal: 'Do it.' };

describe('heartbeats of a watch', () => {
  let supervisor: SupervisorUnderTest;
  let runId: string;
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start({ config: { watchHeartbeatMs: HEARTBEAT_MS } });
    const { run } = await supervisor.runs().startRun(START);
    runId = run?.runId ?? '';
    await supervisor.fakes.called(AgentWorkerService.method.deliver);
  });
  afterEach(() => supervisor.close());

  const cancel = () => supervisor.runs().cancelRun({ requestId: 'cancel-1', runId });
  const timeline = async () =>
    (await Array.fromAsync(supervisor.runs().watchRun({ runId }))).map(({ event }) =>
      Number(event?.sequence),
    );
  const publish = (eventId: string) =>
    publishHook(supervisor, { eventId, type: 'STEP_START', emitter: 'agent-worker', runId });

  it('are sent while no event occurs, with the sequence of the last event, and are not recorded (HK-1, SYS-4)', async () => {
    const seen: RunEvent[] = [];
    for await (const { event } of supervisor.runs().watchRun({ runId })) {
      if (event) seen.push(event);
      const heartbeats = seen.filter(({ entry }) => entry.case === 'heartbeat');
      if (heartbeats.length === 3 && event?.entry.case === 'heartbeat') await cancel();
    }
    const heartbeats = seen.filter(({ entry }) => entry.case === 'heartbeat');
    // RUN_START is the only event before the cancel.
    expect(heartbeats.slice(0, 3).map(({ sequence }) => sequence)).toEqual([1n, 1n, 1n]);
    expect(seen.at(-1)?.entry.case).toBe('result');
    const recorded = seen.filter(({ entry }) => entry.case !== 'heartbeat');
    expect(recorded.map(({ sequence }) => Number(sequence))).toEqual(await timeline());
  });

  it('are sent by RunAgent, too (HK-1)', async () => {
    for await (const answer of supervisor.runs().runAgent({ start: START })) {
      if (answer.event?.entry.case !== 'heartbeat') continue;
      expect(answer.runId).toBe(runId);
      break;
    }
  });

  describe('the client library', () => {
    let wire: FaultProxy;
    let connections: number;
    beforeEach(async () => {
      connections = 0;
      wire = await startFaultProxy(() => {
        connections += 1;
        // The second connection is served; the client has closed the silent one.
        if (connections === 2) setImmediate(() => wire.fail('none'));
        return supervisor.service.edgeAddress ?? '';
      });
    });
    afterEach(() => wire.close());

    const client = () =>
      createWritClient({
        baseUrl: `http://${wire.address}`,
        apiKey: supervisor.apiKey('anna'),
        silenceMs: SILENCE_MS,
      }).runs;

    it.each([
      ['watchRun', () => client().watchRun({ runId })],
      ['runAgent', () => client().runAgent({ start: START })],
    ] as const)(
      '%s continues after a silent stream without gaps, duplicates or heartbeats (HK-1, SYS-4)',
      async (_, open) => {
        const seen: RunEvent[] = [];
        for await (const { event } of open()) {
          if (event) seen.push(event);
          if (event?.sequence === 1n) {
            // The connection stays open, like a connection to a paused supervisor.
            wire.fail('stalled');
            await publish('evt_meanwhile');
          }
          if (event?.sequence === 2n) await cancel();
        }
        expect(seen.map(({ sequence }) => Number(sequence))).toEqual(await timeline());
        expect(seen.at(-1)?.entry.case).toBe('result');
        expect(connections).toBe(2);
        expect(seen.map(({ entry }) => entry.case)).not.toContain('heartbeat');
      },
    );

    it('keeps a stream open on which only heartbeats arrive (SYS-4)', async () => {
      const watching = Array.fromAsync(client().watchRun({ runId }));
      let heartbeats = 0;
      for await (const { event } of supervisor.runs().watchRun({ runId })) {
        if (event?.entry.case === 'heartbeat') heartbeats += 1;
        if (heartbeats * HEARTBEAT_MS > 3 * SILENCE_MS) break;
      }
      await cancel();
      expect((await watching).at(-1)?.event?.entry.case).toBe('result');
      expect(connections).toBe(1);
    });

    it('fails with WATCH_SILENT when the supervisor stays silent (SYS-4)', async () => {
      // Every connection stays silent.
      connections = 2;
      wire.fail('stalled');
      await expect(Array.fromAsync(client().watchRun({ runId }))).rejects.toMatchObject({
        kind: 'unavailable',
        reason: 'WATCH_SILENT',
      });
    });
  });
});
