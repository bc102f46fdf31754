import { randomBytes } from 'node:crypto';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { hookSubject, type ProgressAddress, progressSubject } from '@writ/bus';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import {
  AgentActivity,
  LiveProgressSchema,
  type RunEvent,
} from '@writ/contracts/writ/run/v1/run_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

const AGENTS = `
agents:
  - name: open
    kind: json-action
    model: { model: desk }
    unreviewed_deltas: true
  - name: closed
    kind: json-action
    model: { model: desk }
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

  function tell(address: ProgressAddress, progress: Progress): void {
    const payload = toBinary(LiveProgressSchema, create(LiveProgressSchema, progress));
    const subject = progressSubject(address);
    supervisor.bus.publishLive({ eventId: 'live', subject, payload, headers: {} });
  }

  const say = (address: ProgressAddress, textDelta: string, textOffset = 0) =>
    tell(address, { step: 1, callId: 'op-1', attempt: 1, textDelta, textOffset });

  function record({ runId }: ProgressAddress, eventId: string): Promise<void> {
    const type = HookEventType.STEP_START;
    const event = { eventId, type, emitter: 'agent-worker', tenant: 'acme', runId };
    return supervisor.bus.publish({
      eventId,
      subject: hookSubject({ tenant: 'acme', runId, event: 'STEP_START' }),
      payload: toBinary(HookEventSchema, create(HookEventSchema, event)),
      headers: {},
    });
  }

  const cancel = ({ runId }: ProgressAddress) =>
    supervisor.runs().cancelRun({ requestId: `cancel-${runId}`, runId });

  /** A watch that has begun to look. */
  async function watch({ runId }: ProgressAddress, progress = true) {
    const looks = vi.spyOn(supervisor.bus, 'subscribeLive');
    const stream = supervisor.runs().watchRun({ runId, progress })[Symbol.asyncIterator]();
    const next = async (): Promise<RunEvent | undefined> => {
      const { value, done } = await stream.next();
      return done === true ? undefined : value.event;
    };
    const first = next();
    if (progress) await vi.waitFor(() => expect(looks).toHaveBeenCalledOnce());
    looks.mockRestore();
    let isFirst = true;
    return {
      next: () => {
        if (!isFirst) return next();
        isFirst = false;
        return first;
      },
      async rest(): Promise<RunEvent[]> {
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
          if (event === undefined) throw new Error('The watch is over.');
          if (event.entry.case === 'progress') return event.entry.value;
        }
      },
    };
  }

  const isProgress = ({ entry }: RunEvent) => entry.case === 'progress';

  it('comes between the events, without a place, to those who ask; they alone see anything of it (SUP-1, HK-1)', async () => {
    const agent = await start();
    const [looking, plain] = [await watch(agent), await watch(agent, false)];
    tell(agent, { step: 1, activity: RUNNING });
    expect(await looking.nextProgress()).toMatchObject({ step: 1, activity: RUNNING, missed: 0 });
    await record(agent, 'evt_1');
    say(agent, 'Dear Anna');
    tell(agent, { step: 1, activity: WAITING_FOR_TOOL });
    expect(await looking.nextProgress()).toMatchObject({
      agent: { name: 'open', instance: agent.agent },
      textDelta: 'Dear Anna',
      unreviewed: true,
      callId: 'op-1',
      attempt: 1,
    });
    expect(await looking.nextProgress()).toMatchObject({ activity: WAITING_FOR_TOOL });
    await cancel(agent);
    await looking.rest();
    const recorded = await plain.rest();
    expect(recorded.some(isProgress)).toBe(false);
    expect(recorded.map(({ sequence }) => Number(sequence))).toEqual([1, 2, 3, 4]);
    // Nothing of it was kept, and a watch of a run that is over shows none.
    expect(await (await watch(agent)).rest()).toEqual(recorded);
  });

  it('reaches RunAgent, too, and is not there unless asked for (SUP-1)', async () => {
    const agent = await start();
    const looks = vi.spyOn(supervisor.bus, 'subscribeLive');
    const request = { start: { requestId: 'open', agent: 'open', goal: 'Do it.' } };
    const [asked, plain] = [true, false].map((progress) =>
      Array.fromAsync(supervisor.runs().runAgent({ ...request, progress })),
    );
    await vi.waitFor(() => expect(looks).toHaveBeenCalledOnce());
    tell(agent, { step: 1, activity: RUNNING });
    await record(agent, 'evt_1');
    await cancel(agent);
    const shown = (await asked)?.flatMap(({ event }) => (event ? [event] : [])) ?? [];
    expect(shown.filter(isProgress)).toMatchObject([{ sequence: 0n }]);
    const recorded = (await plain)?.map(({ event }) => event);
    expect(shown.filter((event) => !isProgress(event))).toEqual(recorded);
    expect(looks).toHaveBeenCalledOnce();
  });

  it('holds what a worker says against the rows: no text that the definition does not allow, no agent that is not there (SV-1)', async () => {
    const [open, closed] = [await start('open'), await start('closed')];
    const looking = await watch(closed);
    say(closed, 'not allowed');
    tell({ ...closed, agent: 'nobody' }, { step: 1, activity: RUNNING });
    tell({ ...closed, agent: open.agent }, { step: 1, activity: RUNNING });
    supervisor.bus.publishLive({
      eventId: 'live',
      subject: progressSubject(closed),
      payload: Buffer.from('no message at all'),
      headers: {},
    });
    tell(closed, { agent: { name: 'open', instance: open.agent }, step: 7, callId: 'smuggled' });
    const shown = await looking.nextProgress();
    expect(shown).toMatchObject({ step: 7, agent: { name: 'closed', instance: closed.agent } });
    expect(shown).toMatchObject({ textDelta: '', callId: '', unreviewed: false });
  });

  it('is of the watched run and tenant alone (SYS-6)', async () => {
    const [mine, other] = [await start('open'), await start('closed')];
    const looking = await watch(mine);
    tell(other, { step: 1, activity: RUNNING });
    tell({ ...mine, runId: other.runId }, { step: 2, activity: RUNNING });
    tell({ ...mine, tenant: 'rivals' }, { step: 3, activity: RUNNING });
    tell(mine, { step: 4, activity: RUNNING });
    expect(await looking.nextProgress()).toMatchObject({ step: 4, missed: 0 });
    const foreign = supervisor.runs('eve').watchRun({ runId: mine.runId, progress: true });
    await expect(Array.fromAsync(foreign)).rejects.toMatchObject({ reason: 'RUN_NOT_FOUND' });
  });

  it('is lost on a slow watcher, who is told how much and gets every event, and slows nobody else (HK-1)', async () => {
    const agent = await start();
    const [slow, quick] = [await watch(agent), await watch(agent)];
    tell(agent, { step: 1, activity: RUNNING });
    await Promise.all([slow.nextProgress(), quick.nextProgress()]);
    // The door compresses what it can; this it cannot, so that little fits between it and the watcher.
    const text = randomBytes(6_000).toString('base64');
    const rounds = 10;
    const perRound = 20;
    for (let round = 0; round < rounds; round += 1) {
      await record(agent, `evt_${round}`);
      for (let each = 0; each < perRound; each += 1) {
        say(agent, text, (round * perRound + each) * text.length);
      }
      for (let each = 0; each < perRound; each += 1) {
        expect(await quick.nextProgress()).toMatchObject({ missed: 0 });
      }
    }
    tell(agent, { step: 2, activity: RUNNING });
    await quick.nextProgress();
    let shown = 0;
    let missed = 0;
    const sequences: number[] = [];
    for (let step = 1; step !== 2; ) {
      const event = await slow.next();
      if (event?.entry.case === 'progress') {
        shown += 1;
        missed += event.entry.value.missed;
        step = event.entry.value.step;
      } else sequences.push(Number(event?.sequence));
    }
    expect(missed).toBeGreaterThan(0);
    expect(shown + missed).toBe(rounds * perRound + 1);
    await cancel(agent);
    for (const { sequence, entry } of await slow.rest()) {
      if (entry.case !== 'progress') sequences.push(Number(sequence));
    }
    // The first was read before the flood; then the steps, RUN_END and the result.
    expect(sequences).toEqual(Array.from({ length: rounds + 2 }, (_, index) => index + 2));
  });
});
