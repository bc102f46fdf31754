import { durationFromMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { SLOT_GRANT_TTL_MS } from '@writ/identity';
import { ManualClock } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Family, type Member } from './family.ts';
import { publishHook } from './publish-hook.ts';

const { acquire, release } = SpawnBudgetService.method;
const PAUSED = { reason: 'AGENT_PAUSED', kind: 'failed_precondition' };

describe('a paused agent', () => {
  const clock = new ManualClock(new Date());
  let family: Family;
  let lead: Member;
  let scout: Member;
  beforeEach(async () => {
    family = await Family.start({ clock });
    lead = await family.lead();
    scout = await lead.child('op-1', 'lead');
    scout.grant = await scout.freshGrant();
  });
  afterEach(() => family.close());

  /** Spawns a child for which spawn-budget pauses the scout. */
  async function preempt(): Promise<Member> {
    const { fakes } = family.supervisor;
    const { name = '', instance = '' } = scout.delivery.agent ?? {};
    fakes.answer(acquire, ({ agent }) => ({
      slot: { ...(agent && { agent }), grant: 'g', acquireTime: timestampFromDate(clock.now()) },
      changes: [
        { agent: { name, instance }, from: SlotState.ACTIVE, to: SlotState.PAUSED },
        ...(agent ? [{ agent, from: SlotState.UNSPECIFIED, to: SlotState.ACTIVE }] : []),
      ],
    }));
    const answer = await lead.spawn('op-2', 'digger');
    expect(answer.paused).toMatchObject({ name, instance });
    return family.member(answer.child?.instance ?? '');
  }

  const eventIdOf = (type: string, at: Date) => `evt_${type.toLowerCase()}_${at.getTime()}`;

  async function publish(
    type: 'AGENT_PAUSED' | 'AGENT_RESUMED',
    at: Date,
    status = type === 'AGENT_PAUSED' ? 'paused' : 'ok',
  ): Promise<void> {
    const { runId, instance } = scout;
    await publishHook(family.supervisor, {
      eventId: eventIdOf(type, at),
      type,
      emitter: 'spawn-budget',
      eventTime: timestampFromDate(at),
      runId,
      agent: { name: 'lead', instance },
      status,
    });
  }

  it('is rejected by the supervisor as soon as spawn-budget reports the preemption, while its grant is still valid (SB-4)', async () => {
    await scout.spawn('op-1', 'scout');
    await preempt();
    await expect(scout.spawn('op-2', 'scout')).rejects.toMatchObject(PAUSED);
    await expect(scout.spawn('op-1', 'scout')).rejects.toMatchObject(PAUSED);
    await expect(scout.verdictOf('op-1')).rejects.toMatchObject(PAUSED);
    await expect(scout.final('op-3')).rejects.toMatchObject(PAUSED);
    // Other agents are not refused.
    await lead.spawn('op-4', 'scout');
  });

  it('is rejected although a worker has published an event with the id of the pause (SB-4, HK-1)', async () => {
    const at = clock.now();
    const { runId, instance } = scout;
    await publishHook(family.supervisor, {
      eventId: eventIdOf('AGENT_PAUSED', at),
      type: 'STEP_START',
      emitter: 'agent-worker',
      runId,
      agent: { name: 'lead', instance },
      step: 1,
    });
    await publish('AGENT_PAUSED', at);
    await expect(scout.final('op-2')).rejects.toMatchObject(PAUSED);
  });

  it('may still submit a partial result (SB-4)', async () => {
    await preempt();
    const decision = await scout.final('op-2', 'So far.', true);
    expect(decision).toMatchObject({ runEnded: true, stopReason: '' });
    expect((await lead.end(scout.instance)).stopReason).toBe('paused');
  });

  it('acts again after a Release has returned its slot (SB-4)', async () => {
    const digger = await preempt();
    clock.advance(10);
    const agent = { name: 'lead', instance: scout.instance };
    family.supervisor.fakes.answer(release, () => ({
      released: true,
      changes: [{ agent, from: SlotState.PAUSED, to: SlotState.ACTIVE }],
    }));
    expect((await lead.end(digger.instance)).resumed).toMatchObject([agent]);
    expect((await scout.final('op-2')).runEnded).toBe(true);
  });

  it('follows the events of spawn-budget in their chronological order (SB-4, HK-1)', async () => {
    const at = (ms: number) => new Date(clock.now().getTime() + ms);
    await publish('AGENT_PAUSED', at(0));
    await expect(scout.final('op-2')).rejects.toMatchObject(PAUSED);
    await publish('AGENT_RESUMED', at(20));
    await publish('AGENT_PAUSED', at(10));
    expect((await scout.final('op-2')).runEnded).toBe(true);
  });

  it('acts with a grant that was signed after the pause, even if the event is late (SB-4)', async () => {
    await preempt();
    clock.advance(1);
    scout.grant = await scout.freshGrant();
    expect((await scout.final('op-2')).runEnded).toBe(true);
    // The rule depends on the maximum lifetime of a grant.
    expect(SLOT_GRANT_TTL_MS).toBe(5_000);
  });

  it('consumes no active time while paused (EM-1)', async () => {
    const executionBudget = { maxActive: durationFromMs(30_000) };
    scout = await lead.child('op-5', 'lead', { executionBudget });
    clock.advance(20_000);
    await publish('AGENT_PAUSED', clock.now());
    clock.advance(15_000);
    await publish('AGENT_RESUMED', clock.now());
    clock.advance(9_000);
    expect((await scout.spawn('op-1', 'scout')).decision?.stopReason).toBe('');
    clock.advance(1_001);
    const released = () =>
      family.supervisor.fakes.requests(release).map(({ agentInstance }) => agentInstance);
    await expect.poll(released, { interval: 5 }).toContain(scout.instance);
    expect((await lead.end(scout.instance)).stopReason).toBe('max_seconds');
    const { run } = await family.supervisor.runs().getRun({ runId: lead.runId });
    expect(run?.state).toBe(RunState.RUNNING);
  });

  it('is not refused when only its lease expired, and the time without a lease is not counted as active (EM-1, SB-8)', async () => {
    const executionBudget = { maxActive: durationFromMs(30_000) };
    scout = await lead.child('op-5', 'lead', { executionBudget });
    clock.advance(20_000);
    const expiredAt = clock.now();
    clock.advance(9_000);
    await publish('AGENT_PAUSED', expiredAt, 'lapsed');
    clock.advance(15_000);
    await publish('AGENT_RESUMED', clock.now());
    expect((await scout.spawn('op-1', 'scout')).decision?.stopReason).toBe('');
    clock.advance(9_999);
    expect((await scout.spawn('op-2', 'scout')).decision?.stopReason).toBe('');
    clock.advance(2);
    await family.supervisor.fakes.called(release);
    expect((await lead.end(scout.instance)).stopReason).toBe('max_seconds');
  });
});
