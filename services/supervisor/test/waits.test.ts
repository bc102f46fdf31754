import { durationFromMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { ManualClock, UnavailableError } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Family, type Member } from './family.ts';
import { publishHook } from './publish-hook.ts';

const { getPool, release } = SpawnBudgetService.method;
const { RUNNING, SUSPENDED, WAITING_FOR_INPUT, TIMED_OUT, PARKED } = RunState;
const QUESTION = 'human_reply:ses-1';

describe('a run whose agents wait', () => {
  const clock = new ManualClock(new Date());
  let family: Family;
  let lead: Member;
  let sequence: bigint;
  beforeEach(async () => {
    sequence = 0n;
    family = await Family.start({ clock });
    lead = await family.lead();
    await expect.poll(runState, { interval: 5 }).toBe(RUNNING);
  });
  afterEach(() => family.close());

  const runOf = async () => (await family.supervisor.runs().getRun({ runId: lead.runId })).run;
  const runState = async () => (await runOf())?.state;

  interface Report {
    readonly signals?: readonly string[];
    readonly number?: bigint;
    readonly at?: Date;
  }

  /** Publishes that an agent waits, or that it runs again, as spawn-budget does. */
  async function report(
    { runId, instance }: Member,
    type: 'AGENT_SUSPENDED' | 'AGENT_WOKEN',
    { signals = [], at = clock.now(), number }: Report = {},
  ): Promise<void> {
    sequence += 1n;
    const eventId = `evt_${instance.replaceAll(/[^a-z0-9]/g, '')}_${sequence}`;
    await publishHook(family.supervisor, {
      eventId,
      type,
      emitter: 'spawn-budget',
      eventTime: timestampFromDate(at),
      runId,
      agent: { name: 'lead', instance },
      waitingFor: signals.join(),
      slotSequence: number ?? sequence,
    });
  }

  it('waits only while none of its agents works, and shows when an agent asks a person (AG-7)', async () => {
    const child = await lead.child('op-1', 'lead');
    const before = (await runOf())?.lastSequence;
    await report(child, 'AGENT_SUSPENDED', { signals: [QUESTION] });
    expect(await runState()).toBe(RUNNING);
    await report(lead, 'AGENT_SUSPENDED', { signals: [`reply:${child.instance}`] });
    expect(await runState()).toBe(WAITING_FOR_INPUT);
    const listed = async (state: RunState) =>
      (await family.supervisor.runs().listRuns({ states: [state] })).runs.map(({ runId }) => runId);
    expect(await listed(WAITING_FOR_INPUT)).toEqual([lead.runId]);
    expect(await listed(SUSPENDED)).toEqual([]);
    await report(child, 'AGENT_WOKEN');
    expect(await runState()).toBe(RUNNING);
    await report(child, 'AGENT_SUSPENDED', { signals: ['new_feed_item'] });
    expect(await runState()).toBe(SUSPENDED);
    // The timeline has no entries for the reported waits.
    expect((await runOf())?.lastSequence).toBe(before);
  });

  it('shows the wait for another version of the code on the timeline and in GetRun, with the required action (AG-7, BD-6)', async () => {
    const before = (await runOf())?.lastSequence ?? 0n;
    await report(lead, 'AGENT_SUSPENDED', { signals: ['code:version_missing:2'] });
    expect(await runOf()).toMatchObject({
      state: SUSPENDED,
      lastSequence: before + 1n,
      waitingDetail: expect.stringMatching(
        /lacks version "2" of its code\. Start a worker with the previous code, or cancel the run\.$/,
      ),
    });
    // The wait consumes none of the 60 s of active time.
    clock.advance(300_000);
    await report(lead, 'AGENT_WOKEN');
    expect(await runOf()).toMatchObject({ state: RUNNING, waitingDetail: '' });
  });

  it('ignores a repeated or older report, and ends the reported wait of an agent that acts (EM-1, AG-7)', async () => {
    await report(lead, 'AGENT_SUSPENDED', { signals: ['timer:op-1'], number: 4n });
    await report(lead, 'AGENT_WOKEN', { number: 7n });
    await report(lead, 'AGENT_SUSPENDED', { signals: ['timer:op-1'], number: 4n });
    await report(lead, 'AGENT_SUSPENDED', { signals: ['timer:op-2'], number: 6n });
    expect(await runState()).toBe(RUNNING);
    await report(lead, 'AGENT_SUSPENDED', { signals: ['timer:op-3'], number: 8n });
    expect(await runState()).toBe(SUSPENDED);
    await lead.spawn('op-4', 'scout');
    expect(await runState()).toBe(RUNNING);
  });

  it('consumes no active time, unless a parent waits for a child that works (EM-1)', async () => {
    clock.advance(20_000);
    const child = await lead.child('op-1', 'lead');
    await report(lead, 'AGENT_SUSPENDED', { signals: [`reply:${child.instance}`] });
    clock.advance(10_000);
    await report(child, 'AGENT_SUSPENDED', { signals: [QUESTION] });
    clock.advance(600_000 - 31_000);
    // The lead has used 30 of its 60 s of active time, and 1 s remains until its deadline.
    expect(await runState()).toBe(WAITING_FOR_INPUT);
    await report(child, 'AGENT_WOKEN');
    clock.advance(1);
    await report(child, 'AGENT_SUSPENDED', { signals: ['new_source_item'] });
    expect(await runState()).toBe(SUSPENDED);
    await report(lead, 'AGENT_WOKEN');
    expect((await lead.final('op-9')).runEnded).toBe(true);
  });

  it('ends at the cap of active time when a child works while its parent waits (EM-1)', async () => {
    const child = await lead.child('op-1', 'lead');
    await report(lead, 'AGENT_SUSPENDED', { signals: [`reply:${child.instance}`] });
    clock.advance(60_001);
    await expect.poll(runState, { interval: 5 }).toBe(TIMED_OUT);
  });

  it('is not ended when the report of its wait was lost or spawn-budget is down (EM-1, SYS-4)', async () => {
    const { fakes } = family.supervisor;
    const agent = { name: 'lead', instance: lead.instance };
    const waitTime = timestampFromDate(clock.now());
    const slot = { agent, state: SlotState.SUSPENDED, waitTime, waitSequence: 5n };
    fakes.answer(getPool, () => {
      throw new UnavailableError('UNAVAILABLE', 'spawn-budget is down.');
    });
    clock.advance(61_000);
    await fakes.called(getPool, 2);
    expect(await runState()).toBe(RUNNING);
    fakes.answer(getPool, () => ({ pool: { holders: [{ ...slot, waitingFor: [QUESTION] }] } }));
    await expect.poll(runState, { interval: 5 }).toBe(WAITING_FOR_INPUT);
    await report(lead, 'AGENT_WOKEN', { number: 6n });
    expect((await lead.final('op-9')).runEnded).toBe(true);
  });

  it('does not block the end of another run when its pool cannot be read (EM-1, SYS-4)', async () => {
    const { fakes } = family.supervisor;
    clock.advance(1);
    const { runId: later } = await family.lead();
    const stateOf = async (runId: string) =>
      (await family.supervisor.runs().getRun({ runId })).run?.state;
    await expect.poll(() => stateOf(later), { interval: 5 }).toBe(RUNNING);
    fakes.answer(getPool, ({ runId }) => {
      if (runId === lead.runId) throw new Error('The pool is corrupt.');
      return { pool: { runId } };
    });
    clock.advance(61_000);
    await expect.poll(() => stateOf(later), { interval: 5 }).toBe(TIMED_OUT);
    expect(await runState()).toBe(RUNNING);
  });

  it('is not ended while its agent has no leased slot to act with (EM-1, SB-8)', async () => {
    const { fakes } = family.supervisor;
    const agent = { name: 'lead', instance: lead.instance };
    fakes.answer(getPool, () => ({ pool: { holders: [{ agent, state: SlotState.SUSPENDED }] } }));
    clock.advance(61_000);
    await fakes.called(getPool, 1);
    // The clock has stopped, so the next sweeps do not read the pool again.
    clock.advance(61_000);
    expect(await runState()).toBe(RUNNING);
    expect(fakes.requests(release)).toEqual([]);
  });

  it('still waits after a halt is lifted, and consumes no active time during the halt (EM-1, SV-9)', async () => {
    const child = await lead.child('op-1', 'lead', {
      executionBudget: { maxActive: durationFromMs(30_000) },
    });
    const control = family.supervisor.as('anna', ControlService);
    const scope = { kind: { case: 'run', value: { tenant: 'acme', runId: lead.runId } } } as const;
    const halted = await control.halt({ requestId: 'h-1', scope, reason: 'Look first.' });
    expect(await runState()).toBe(PARKED);
    // The agents begin to wait after the halt was ordered, as when both happen at about the same time.
    await report(child, 'AGENT_SUSPENDED', { signals: [QUESTION] });
    await report(lead, 'AGENT_SUSPENDED', { signals: [`reply:${child.instance}`] });
    clock.advance(120_000);
    expect(await runState()).toBe(PARKED);
    await control.resume({ requestId: 'r-1', haltId: halted.halt?.haltId ?? '' });
    await expect.poll(runState, { interval: 5 }).toBe(WAITING_FOR_INPUT);
    clock.advance(120_000);
    await report(child, 'AGENT_WOKEN');
    expect(await runState()).toBe(RUNNING);
    expect((await child.final('op-2')).runEnded).toBe(true);
  });

  it.each([
    ['works', [], RUNNING],
    ['asks a person', [QUESTION], WAITING_FOR_INPUT],
    ['waits for the reply of the child', ['reply'], SUSPENDED],
  ])(
    'is parked when the child of a halted agent ends; before the halt, that agent %s (AG-7, SV-9)',
    async (...agent) => {
      const [, waitsFor, resumed] = agent;
      const child = await lead.child('op-1', 'lead');
      const signals = waitsFor.map((name) => (name === 'reply' ? `reply:${child.instance}` : name));
      if (signals.length > 0) await report(lead, 'AGENT_SUSPENDED', { signals });
      const control = family.supervisor.as('anna', ControlService);
      const { runId, instance: agentInstance } = lead;
      const value = { tenant: 'acme', runId, agentInstance };
      const scope = { kind: { case: 'agent', value } } as const;
      const halted = await control.halt({ requestId: 'h-1', scope, reason: 'Look first.' });
      expect(await runState()).toBe(RUNNING);
      await child.final('op-2');
      expect(await runState()).toBe(PARKED);
      await control.resume({ requestId: 'r-1', haltId: halted.halt?.haltId ?? '' });
      expect(await runState()).toBe(resumed);
    },
  );
});
