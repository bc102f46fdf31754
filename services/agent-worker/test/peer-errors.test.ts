import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { AgentState } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import {
  ManualClock,
  PermissionDeniedError,
  PreconditionError,
  UnauthenticatedError,
  UnavailableError,
  type WritError,
} from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AGENT_WORKER_DEFAULTS } from '../src/index.ts';
import type { AgentFactory } from '../src/runtime/agent.ts';
import { AGENT, RUN, TENANT } from './delivery.ts';
import { inactiveAgentRow } from './inactive-agent-row.ts';
import { ScriptedModel } from './scripted-model.ts';
import { World } from './world.ts';

let scripts: ScriptedModel;

beforeAll(async () => {
  scripts = await ScriptedModel.start();
});

afterAll(() => scripts[Symbol.asyncDispose]());

function startWorld(): Promise<World> {
  return World.start({ model: scripts.model('auto-1000') });
}

const down = (): WritError => new UnavailableError('UNAVAILABLE', 'The service is down.');

describe('a worker with failing peers', () => {
  it('retries until they recover, without duplicate effects (SYS-4, RT-1)', async () => {
    const world = await startWorld();
    for (const moment of [
      'before generate op-1',
      'after generate op-3',
      'before review op-2',
      'after review op-4',
      'before call_tool op-4',
      'after call_tool op-6',
    ] as const) {
      world.faults.failAt(moment, down(), down());
    }
    await world.startWorker();
    await world.deliver();
    const { epoch } = await world.until('COMPLETED');
    expect(epoch).toBe(1n);
    expect(world.meter.paid).toHaveLength(4);
    expect(world.supervisor.decided).toHaveLength(4);
    expect(world.gateway.executed).toHaveLength(3);
  });

  it('refreshes tokens before they expire, and when a peer rejects them (SUP-9)', async () => {
    const world = await startWorld();
    const expired = new UnauthenticatedError('TOKEN_EXPIRED', 'The token has expired.');
    world.faults.failAt('before review op-4', expired);
    await world.startWorker();
    await world.deliver({ tokenTtlMs: -1 });
    await world.until('COMPLETED');
    expect(world.supervisor.refreshes).toBe(2);
  });

  it('uses a longer timeout for tool calls, because the gateway cancels a tool whose caller disconnects (TG-1, TG-6)', async () => {
    const world = await startWorld();
    const { callTimeoutMs } = AGENT_WORKER_DEFAULTS;
    await world.startWorker({ callTimeoutMs });
    await world.deliver();
    await world.until('COMPLETED');
    expect(Math.min(...world.gateway.remainingMs)).toBeGreaterThan(2 * callTimeoutMs);
  });

  it('renews an expired writ (TG-1, SV-6)', async () => {
    const world = await startWorld();
    world.gateway.expired.add('writ-op-4-2');
    await world.startWorker();
    await world.deliver();
    await world.until('COMPLETED');
    expect(world.gateway.requests.map(({ writ }) => writ)).toEqual([
      'writ-op-2-1',
      'writ-op-4-2',
      'writ-op-4-3',
      'writ-op-6-4',
    ]);
    expect(world.gateway.executed).toHaveLength(3);
  });

  it('parks a halted agent and retries it later (AG-7, SV-9)', async () => {
    const world = await startWorld();
    const halted = () => new PreconditionError('HALTED', 'Halted by an admin.');
    world.faults.failAt('before generate op-3', halted(), halted(), halted());
    await world.startWorker();
    await world.deliver();
    const { epoch } = await world.until('COMPLETED');
    expect(epoch).toBe(4n);
    expect(world.meter.paid).toHaveLength(4);
  });

  it('parks an agent whose tenant is now served by other workers, and retries it later (SYS-6)', async () => {
    const world = await startWorld();
    const notServed = () =>
      new PermissionDeniedError('TENANT_NOT_SERVED', 'Other workers serve the tenant.');
    for (const moment of [
      'before generate op-3',
      'before review op-4',
      'before call_tool op-4',
    ] as const) {
      world.faults.failAt(moment, notServed(), notServed());
    }
    await world.startWorker();
    await world.deliver();
    const { stopReason, epoch } = await world.until('COMPLETED');
    expect(stopReason).toBe('success');
    expect(epoch).toBe(7n);
    expect(world.gateway.executed).toHaveLength(3);
  });

  it('resumes a parked agent at once on a signal (AG-7)', async () => {
    const world = await startWorld();
    world.faults.failAt('before call_tool op-2', new PreconditionError('FROZEN', 'Frozen.'));
    await world.startWorker({ parkMs: 3_600_000 });
    await world.deliver();
    await world.until('PARKED');
    await world.worker.signal({
      requestId: 'resume-1',
      tenant: TENANT,
      runId: RUN,
      agentInstance: AGENT.instance,
      name: 'resumed',
    });
    const { stopReason } = await world.until('COMPLETED');
    expect(stopReason).toBe('success');
    expect(world.gateway.executed).toHaveLength(3);
  });

  it('abandons an agent that another worker has claimed, and claims it again later (RT-2)', async () => {
    const world = await startWorld();
    const stale = new PreconditionError('STALE_EPOCH', 'Epoch 1 is stale: epoch 2 was seen.');
    world.faults.failAt('before review op-2', stale);
    await world.startWorker({ leaseTtlMs: 200 });
    await world.deliver();
    const { epoch } = await world.until('COMPLETED');
    expect(epoch).toBeGreaterThan(1n);
    expect(world.supervisor.reports).toEqual([]);
  });

  it('ends an agent with the stop reason that a peer returns for an ended run (AG-7)', async () => {
    const world = await startWorld();
    const ended = new PreconditionError('RUN_ENDED', 'The run has ended.', {
      stop_reason: 'max_seconds',
    });
    world.faults.failAt('before review op-2', ended);
    await world.startWorker();
    await world.deliver();
    const { stopReason, state } = await world.until('TIMED_OUT');
    expect({ state, stopReason }).toEqual({
      state: AgentState.TIMED_OUT,
      stopReason: 'max_seconds',
    });
  });

  it('ends an agent with the stop reason of a peer even during a shutdown (AG-7, RT-4)', async () => {
    const world = await World.start({ inFile: true });
    const ended = new PreconditionError('RUN_ENDED', 'The run has ended.', {
      stop_reason: 'max_seconds',
    });
    world.faults.failAt('before review op-0', ended);
    const { promise: thrown, resolve } = Promise.withResolvers<void>();
    const custom: AgentFactory = (_, id) => ({
      id,
      kind: 'custom',
      async run(ctx) {
        await ctx.reply('Done.').finally(async () => {
          resolve();
          // Waits until the worker aborts the agent during its shutdown.
          await ctx.meta.cancellation?.wait();
        });
      },
    });
    // The drain timeout is long enough for the agent to stop.
    const draining = await world.startWorker({ drainMs: 1_000 }, { agents: { custom } });
    await world.deliver({ manifest: { kind: AgentKind.CUSTOM } });
    await thrown;
    await draining.stop();
    await world.startWorker({}, { agents: { custom } });
    const { stopReason, epoch } = await world.until('TIMED_OUT');
    expect({ stopReason, epoch }).toEqual({ stopReason: 'max_seconds', epoch: 1n });
  });

  it.each([{ stop_reason: 'success' }, {}])(
    'replies for a child with the answer that was approved when another process ran it (AG-3): %o',
    async (named) => {
      const world = await startWorld();
      world.supervisor.endings.set(RUN, { stopReason: 'success', answer: 'The brief.' });
      const ended = new PreconditionError('RUN_ENDED', 'The run has ended.', named);
      world.faults.failAt('before review op-2', ended);
      const { store } = await world.startWorker();
      const parent = {
        instance: 'parent-1',
        name: 'parent',
        state: 'SUSPENDED',
        waiting_for: '[]',
      } as const;
      await store.transaction((trx) =>
        trx.insertInto('agents').values(inactiveAgentRow(parent)).execute(),
      );
      await world.deliver({ from: parent.instance });
      expect((await world.until('COMPLETED')).stopReason).toBe('success');
      const replies = await store.db
        .selectFrom('signals')
        .select('payload')
        .where('instance', '=', parent.instance)
        .execute();
      expect(replies.map(({ payload }) => JSON.parse(payload))).toEqual([
        { kind: 'replied', text: 'The brief.', partial: false },
      ]);
    },
  );

  it('gets the stop reason from the supervisor when a peer does not return it (AG-7, RT-4)', async () => {
    const world = await startWorld();
    world.supervisor.endings.set(RUN, { stopReason: 'halted', answer: '' });
    world.faults.failAt('before review op-2', new PreconditionError('RUN_ENDED', 'Over.'));
    await world.startWorker();
    await world.deliver();
    const { stopReason } = await world.until('HALTED');
    expect(stopReason).toBe('halted');
  });

  it('retries the outcome report of an agent until the supervisor records it (BD-3)', async () => {
    const world = await startWorld();
    const tooEarly = new UnauthenticatedError('TOKEN_INVALID', 'It was issued in the future.', {
      token: 'agent',
      check: 'iat',
    });
    const notSigned = () =>
      new UnauthenticatedError('TOKEN_INVALID', 'It is not signed.', { check: 'signature' });
    const refused = new PermissionDeniedError('CALLER_NOT_ALLOWED', 'Not allowed.');
    world.faults.failAt(
      'before report error:writ_mismatch',
      tooEarly,
      refused,
      ...Array.from({ length: 4 }, notSigned),
    );
    world.faults.failAt(
      'before call_tool op-2',
      ...Array.from({ length: 3 }, () => new PermissionDeniedError('WRIT_MISMATCH', 'Mismatch.')),
    );
    await world.startWorker({ parkMs: 10 });
    await world.deliver();
    const { stopReason, epoch } = await world.until('ERROR');
    expect(stopReason).toBe('error:writ_mismatch');
    expect(epoch).toBe(3n);
    expect(world.supervisor.reports).toHaveLength(7);
  });

  it('retries a parked agent after the configured delay, even if its clock was wrong when it parked the agent (BD-3)', async () => {
    const world = await startWorld();
    const clock = new ManualClock(new Date());
    const { reached, release } = world.faults.holdAt('before review op-2');
    world.faults.failAt('after review op-2', new PreconditionError('FROZEN', 'Frozen.'));
    const { store } = await world.startWorker({}, { clock });
    await world.deliver();
    await reached;
    clock.step(3_600_000);
    release();
    const stateOf = () => store.db.selectFrom('agents').select('state').executeTakeFirst();
    await vi.waitFor(async () => expect(await stateOf()).toEqual({ state: 'PARKED' }));
    clock.step(-3_600_000);
    // The retry delay of a parked agent is 10 ms in this test; the manual clock moves only when the test moves it.
    clock.advance(60_000);
    const { stopReason } = await world.until('COMPLETED');
    expect(stopReason).toBe('success');
  });

  it('ends the agent with the reason of a permanent error (SYS-3)', async () => {
    const world = await startWorld();
    world.gateway.expired.add('writ-op-2-1');
    for (const renewal of [2, 3, 4, 5]) world.gateway.expired.add(`writ-op-2-${renewal}`);
    await world.startWorker();
    await world.deliver();
    const { stopReason } = await world.until('ERROR');
    expect(stopReason).toBe('error:writ_expired');
  });
});
