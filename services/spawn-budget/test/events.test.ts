import { timestampDate } from '@bufbuild/protobuf/wkt';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import {
  RenewIntent,
  type WatchPausesResponse,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { Priority } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestRun } from './test-run.ts';
import { World } from './world.ts';

const { AGENT_PAUSED, AGENT_RESUMED, AGENT_SUSPENDED, AGENT_WOKEN } = HookEventType;

describe('events of spawn-budget', () => {
  let world: World;
  beforeAll(async () => {
    world = await World.start({ config: { sweepMs: 5 } });
  });
  afterAll(() => world.stop());

  it('report a pause and the resumption once each, with the other agent of the slot change (HK-1, HK-2)', async () => {
    const run = new TestRun(world);
    await run.open({ maxAgents: 2 });
    await run.acquire('low', Priority.LOW);
    await run.acquire('high', Priority.HIGH);
    await run.acquire('high', Priority.HIGH);
    await run.release('high');
    const ours = () => world.events.filter(({ runId }) => runId === run.runId);
    await world.until(() => ours().length >= 2);
    expect(ours()).toMatchObject([
      {
        type: AGENT_PAUSED,
        emitter: 'spawn-budget',
        ...run.id,
        agent: { name: 'child', instance: 'low' },
        otherAgent: { instance: 'high' },
        status: 'paused',
        traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/),
      },
      { type: AGENT_RESUMED, agent: { instance: 'low' }, otherAgent: { instance: 'high' } },
    ]);
    expect(ours().map(({ sessionId }) => sessionId)).toEqual(['session-1', 'session-1']);
    expect(new Set(ours().map(({ eventId }) => eventId)).size).toBe(2);
  });

  it('report a resumption without a call when the lease of the beneficiary expires (SB-4, SB-8)', async () => {
    const run = new TestRun(world);
    await run.open({ maxAgents: 2 });
    await run.acquire('low', Priority.LOW);
    await run.acquire('high', Priority.HIGH);
    world.advance(15_000);
    await world.until((events) =>
      events.some(({ runId, type }) => runId === run.runId && type === AGENT_RESUMED),
    );
    expect(await run.pool()).toMatchObject({ holders: ['root', 'low'], waiting: ['high'] });
  });

  it('report an expired lease as a pause at the time of expiry, and the later resumption (SB-8, EM-1)', async () => {
    const run = new TestRun(world);
    await run.open({ maxAgents: 2 });
    await run.acquire('low', Priority.LOW);
    const leasedAt = world.clock.now().getTime();
    world.advance(60_000);
    const ours = () => world.events.filter(({ runId }) => runId === run.runId);
    await world.until(() => ours().length >= 2);
    for (const { type, status, eventTime, otherAgent } of ours()) {
      expect({ type, status, otherAgent }).toEqual({ type: AGENT_PAUSED, status: 'lapsed' });
      expect(eventTime && timestampDate(eventTime).getTime()).toBe(leasedAt + 15_000);
    }
    // The root keeps its slot without a lease (SB-1).
    expect(ours().map(({ agent }) => agent?.instance)).toEqual(['root', 'low']);
    await run.renew('low');
    await world.until(() => ours().length >= 3);
    expect(ours().at(-1)).toMatchObject({ type: AGENT_RESUMED, agent: { instance: 'low' } });
  });

  it('report each wait, with its signals, and its end once, even after the lease expired (EM-1, AG-7)', async () => {
    const run = new TestRun(world);
    await run.open({ maxAgents: 2 });
    await run.acquire('asker');
    const ours = () => world.events.filter(({ runId }) => runId === run.runId);
    const signals = ['reply:child-1', 'human_reply:ses-1'];
    const sleep = async (instance: string) => {
      const renewal = await run.renewal(instance, RenewIntent.SUSPEND, 1n, signals);
      await world.worker.renew({ agents: [renewal] });
    };
    for (let repeat = 0; repeat < 2; repeat += 1) await sleep('asker');
    await run.renew('asker');
    await world.until(() => ours().length >= 2);
    expect(ours()).toMatchObject([
      { type: AGENT_SUSPENDED, agent: { instance: 'asker' }, waitingFor: signals.join() },
      { type: AGENT_WOKEN, agent: { instance: 'asker' }, waitingFor: '' },
    ]);
    // Simulates a worker that died before it reported a wait: the leases expire, and the next worker reports the wait.
    world.advance(60_000);
    await sleep('asker');
    await sleep('root');
    const { pool } = await world.supervisor.getPool(run.id);
    const waits = [...(pool?.holders ?? []), ...(pool?.waiting ?? [])];
    expect(waits.map(({ agent, waitingFor }) => [agent?.instance, waitingFor])).toEqual([
      ['root', signals],
      ['asker', signals],
    ]);
    await run.renew('asker');
    await run.renew('root');
    const types = () => ours().map(({ type, agent }) => [agent?.instance, type]);
    await world.until(() => ours().length >= 8);
    expect(types().slice(-4)).toEqual([
      ['asker', AGENT_SUSPENDED],
      ['root', AGENT_SUSPENDED],
      ['asker', AGENT_RESUMED],
      ['root', AGENT_WOKEN],
    ]);
  });

  it('stream pauses only to the workers of the tenant (SB-4, SYS-6)', async () => {
    const run = new TestRun(world);
    const other = new TestRun(world, 'globex');
    for (const each of [run, other]) {
      await each.open({ maxAgents: 2 });
      await each.acquire('low', Priority.LOW);
    }
    const stop = new AbortController();
    const seen: WatchPausesResponse[] = [];
    const watching = (async () => {
      const worker = world.clientOf(world.peer('agent-worker'), { tenants: ['acme'] });
      const pauses = worker.watchPauses({ tenants: ['acme'] }, { signal: stop.signal });
      for await (const pause of pauses) {
        seen.push(pause);
        if (seen.length >= 2) break;
      }
    })();
    // A stream does not report when its subscription takes effect, so the test repeats pauses until two arrive.
    for (let round = 0; seen.length < 2; round += 1) {
      await other.acquire(`high-${round}`, Priority.HIGH);
      await other.release(`high-${round}`);
      await run.acquire(`high-${round}`, Priority.HIGH);
      await run.release(`high-${round}`);
    }
    await watching;
    stop.abort();
    expect(seen.every(({ tenant, runId }) => tenant === 'acme' && runId === run.runId)).toBe(true);
    expect(seen.map(({ change }) => change?.agent?.instance)).toEqual(['low', 'low']);
  });

  it('do not delay the shutdown of the service while they are watched (SUP-8)', async () => {
    const brief = await World.start();
    const pauses = brief.worker.watchPauses({ tenants: ['acme'] });
    const ended = (async () => {
      for await (const _ of pauses) throw new Error('An unexpected pause arrived.');
    })();
    const outcome = ended.then(
      () => 'ended',
      () => 'ended',
    );
    await brief.stop();
    expect(await outcome).toBe('ended');
  });
});
