import { randomBytes } from 'node:crypto';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type ProgressAddress, progressSubject } from '@writ/bus';
import {
  AgentActivity,
  LiveProgressSchema,
  type RunEvent,
} from '@writ/contracts/writ/run/v1/run_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { publishHook } from './publish-hook.ts';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

const AGENTS = `
agents:
  - name: open
    kind: json-action
    model: { model: main }
    unreviewed_deltas: true
  - name: closed
    kind: json-action
    model: { model: main }
`;
const { RUNNING, WAITING_FOR_TOOL } = AgentActivity;

type Progress = MessageInitShape<typeof LiveProgressSchema>;

describe('live progress of a run', () => {
  let supervisor: SupervisorUnderTest;
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start({
      config: { agents: { text: AGENTS, file: 'agents.yaml' } },
    });
  });
  afterEach(() => supervisor.close());

  async function start(agent = 'open'): Promise<ProgressAddress> {
    const { run } = await supervisor.runs().startRun({ requestId: agent, agent, goal: 'Do it.' });
    await supervisor.fakes.called(AgentWorkerService.method.deliver);
    const instance = run?.agent?.instance ?? '';
    return { tenant: 'acme', runId: run?.runId ?? '', agent: instance };
  }

  function publish(address: ProgressAddress, progress: Progress): void {
    const payload = toBinary(LiveProgressSchema, create(LiveProgressSchema, progress));
    const subject = progressSubject(address);
    supervisor.bus.publishLive({ eventId: 'live', subject, payload, headers: {} });
  }

  const publishText = (address: ProgressAddress, textDelta: string, textOffset = 0) =>
    publish(address, { step: 1, callId: 'op-1', attempt: 1, textDelta, textOffset });

  const record = ({ runId }: ProgressAddress, eventId: string) =>
    publishHook(supervisor, { eventId, type: 'STEP_START', emitter: 'agent-worker', runId });

  const cancel = ({ runId }: ProgressAddress) =>
    supervisor.runs().cancelRun({ requestId: `cancel-${runId}`, runId });

  /** Starts a watch; resolves when it has subscribed to progress. */
  async function watch({ runId }: ProgressAddress, progress = true) {
    const subscribe = vi.spyOn(supervisor.bus, 'subscribeLive');
    const stream = supervisor.runs().watchRun({ runId, progress })[Symbol.asyncIterator]();
    const next = async (): Promise<RunEvent | undefined> => {
      const { value, done } = await stream.next();
      return done === true ? undefined : value.event;
    };
    const first = next();
    if (progress) await vi.waitFor(() => expect(subscribe).toHaveBeenCalledOnce());
    subscribe.mockRestore();
    let isFirst = true;
    return {
      next: () => {
        if (!isFirst) return next();
        isFirst = false;
        return first;
      },
      async remaining(): Promise<RunEvent[]> {
        const events: RunEvent[] = [];
        for (;;) {
          const event = await this.next();
          if (event === undefined) return events;
          events.push(event);
        }
      },
      async nextProgress() {
        for (;;) {
          const event = await this.next();
          if (event === undefined) throw new Error('The watch has ended.');
          if (event.entry.case === 'progress') return event.entry.value;
        }
      },
    };
  }

  const isProgress = ({ entry }: RunEvent) => entry.case === 'progress';

  it('arrives between events without a sequence number, only for watchers that request it (SUP-1, HK-1)', async () => {
    const agent = await start();
    const [watching, plain] = [await watch(agent), await watch(agent, false)];
    publish(agent, { step: 1, activity: RUNNING });
    expect(await watching.nextProgress()).toMatchObject({ step: 1, activity: RUNNING, missed: 0 });
    await record(agent, 'evt_1');
    publishText(agent, 'Dear Anna');
    publish(agent, { step: 1, activity: WAITING_FOR_TOOL });
    expect(await watching.nextProgress()).toMatchObject({
      agent: { name: 'open', instance: agent.agent },
      textDelta: 'Dear Anna',
      unreviewed: true,
      callId: 'op-1',
      attempt: 1,
    });
    expect(await watching.nextProgress()).toMatchObject({ activity: WAITING_FOR_TOOL });
    await cancel(agent);
    await watching.remaining();
    const recorded = await plain.remaining();
    expect(recorded.some(isProgress)).toBe(false);
    expect(recorded.map(({ sequence }) => Number(sequence))).toEqual([1, 2, 3, 4]);
    // Progress is not stored, and a watch of an ended run has none.
    expect(await (await watch(agent)).remaining()).toEqual(recorded);
  });

  it('is sent by RunAgent only on request (SUP-1)', async () => {
    const agent = await start();
    const subscribe = vi.spyOn(supervisor.bus, 'subscribeLive');
    const request = { start: { requestId: 'open', agent: 'open', goal: 'Do it.' } };
    const [withProgress, plain] = [true, false].map((progress) =>
      Array.fromAsync(supervisor.runs().runAgent({ ...request, progress })),
    );
    await vi.waitFor(() => expect(subscribe).toHaveBeenCalledOnce());
    publish(agent, { step: 1, activity: RUNNING });
    await record(agent, 'evt_1');
    await cancel(agent);
    const received = (await withProgress)?.flatMap(({ event }) => (event ? [event] : [])) ?? [];
    expect(received.filter(isProgress)).toMatchObject([{ sequence: 0n }]);
    const recorded = (await plain)?.map(({ event }) => event);
    expect(received.filter((event) => !isProgress(event))).toEqual(recorded);
    expect(subscribe).toHaveBeenCalledOnce();
  });

  it('is validated against the store: text that the definition forbids and unknown agents are discarded (SV-1)', async () => {
    const [open, closed] = [await start('open'), await start('closed')];
    const watching = await watch(closed);
    publishText(closed, 'not allowed');
    publish({ ...closed, agent: 'unknown' }, { step: 1, activity: RUNNING });
    publish({ ...closed, agent: open.agent }, { step: 1, activity: RUNNING });
    supervisor.bus.publishLive({
      eventId: 'live',
      subject: progressSubject(closed),
      payload: Buffer.from('not a message'),
      headers: {},
    });
    publish(closed, { agent: { name: 'open', instance: open.agent }, step: 7, callId: 'smuggled' });
    const progress = await watching.nextProgress();
    expect(progress).toMatchObject({ step: 7, agent: { name: 'closed', instance: closed.agent } });
    expect(progress).toMatchObject({ textDelta: '', callId: '', unreviewed: false });
  });

  it('is limited to the watched run and tenant (SYS-6)', async () => {
    const [mine, other] = [await start('open'), await start('closed')];
    const watching = await watch(mine);
    publish(other, { step: 1, activity: RUNNING });
    publish({ ...mine, runId: other.runId }, { step: 2, activity: RUNNING });
    publish({ ...mine, tenant: 'rivals' }, { step: 3, activity: RUNNING });
    publish(mine, { step: 4, activity: RUNNING });
    expect(await watching.nextProgress()).toMatchObject({ step: 4, missed: 0 });
    const otherTenant = supervisor.runs('eve').watchRun({ runId: mine.runId, progress: true });
    await expect(Array.fromAsync(otherTenant)).rejects.toMatchObject({ reason: 'RUN_NOT_FOUND' });
  });

  it('is dropped and counted for a slow watcher, which still receives every event and delays no other watcher (HK-1)', async () => {
    const agent = await start();
    const [slow, fast] = [await watch(agent), await watch(agent)];
    publish(agent, { step: 1, activity: RUNNING });
    await Promise.all([slow.nextProgress(), fast.nextProgress()]);
    // The endpoint compresses responses; incompressible text fills the buffers of the connection.
    const text = randomBytes(6_000).toString('base64');
    const rounds = 10;
    const perRound = 20;
    for (let round = 0; round < rounds; round += 1) {
      await record(agent, `evt_${round}`);
      for (let each = 0; each < perRound; each += 1) {
        publishText(agent, text, (round * perRound + each) * text.length);
      }
      for (let each = 0; each < perRound; each += 1) {
        expect(await fast.nextProgress()).toMatchObject({ missed: 0 });
      }
    }
    publish(agent, { step: 2, activity: RUNNING });
    await fast.nextProgress();
    let received = 0;
    let missed = 0;
    const sequences: number[] = [];
    for (let step = 1; step !== 2; ) {
      const event = await slow.next();
      if (event?.entry.case === 'progress') {
        received += 1;
        missed += event.entry.value.missed;
        step = event.entry.value.step;
      } else sequences.push(Number(event?.sequence));
    }
    expect(missed).toBeGreaterThan(0);
    expect(received + missed).toBe(rounds * perRound + 1);
    await cancel(agent);
    for (const { sequence, entry } of await slow.remaining()) {
      if (entry.case !== 'progress') sequences.push(Number(sequence));
    }
    // The first event was read before; the others are the steps, RUN_END and the result.
    expect(sequences).toEqual(Array.from({ length: rounds + 2 }, (_, index) => index + 2));
  });
});
