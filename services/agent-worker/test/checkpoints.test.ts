import { toJsonString } from '@bufbuild/protobuf';
import { GenerateRequestSchema } from '@writ/contracts/writ/model/v1/model_service_pb';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { describe, expect, it } from 'vitest';
import type { Agent, AgentContext } from '../src/runtime/agent.ts';
import { loadJournal } from '../src/store/journal.ts';
import { findSnapshot, loadItems } from '../src/store/snapshots.ts';
import { openWorkerStore } from '../src/store/worker-store.ts';
import { AGENT, RUN, TENANT } from './delivery.ts';
import { InterceptedStore } from './intercepted-store.ts';
import { approveAll } from './team.ts';
import { World } from './world.ts';

const KEY = { tenant: TENANT, runId: RUN, instance: AGENT.instance };
/** The agent loop saves a checkpoint every 32 iterations; the loop of this test ends in the 35th iteration. */
const LAST_CALL = 70;
const MANIFEST = {
  kind: AgentKind.REACT,
  limits: { maxIterations: 1_000 },
  context: { contextWindow: 300n },
};
/** Settings of a worker that a test abandons: it runs one agent at a time, and its lease outlasts the test. */
const FROZEN = { maxConcurrentAgents: 1, leaseTtlMs: 3_600_000 } as const;

function startWorld(): Promise<World> {
  return World.start({
    inFile: true,
    model: (_, { callId }) => {
      const n = Number(callId.slice('op-'.length));
      if (n >= LAST_CALL) return 'Done.';
      return { toolUses: [{ tool: 'get_refund_context', args: { user_id: n } }] };
    },
  });
}

/** Returns the model requests by call_id; the fake meter rejects a repeated call with a different request. */
function asked(world: World): Map<string, string> {
  return new Map(
    world.meter.requests.map((request) => [
      request.callId,
      toJsonString(GenerateRequestSchema, request),
    ]),
  );
}

/** Runs the agent to its end without a crash. */
async function undisturbed(): Promise<World> {
  const world = await startWorld();
  await world.startWorker(FROZEN);
  await world.deliver({ manifest: MANIFEST });
  await world.until('COMPLETED');
  return world;
}

/** Starts a worker that crashes before or after the commit of its checkpoint, or before the following commit. */
async function startCrashing(
  world: World,
  moment: 'before' | 'after' | 'later',
): Promise<{ readonly died: Promise<void> }> {
  const { promise: died, resolve } = Promise.withResolvers<void>();
  let isDead = false;
  const dieIf = async (isDue: boolean) => {
    isDead ||= isDue;
    if (!isDead) return;
    resolve();
    await world.faults.untilReleased();
    throw new Error('The worker is dead.');
  };
  await world.startWorker(FROZEN, {
    openStore: async (location) => {
      const store = await openWorkerStore(location);
      const isSaved = async () => (await findSnapshot(store.db, KEY)) !== undefined;
      return new InterceptedStore(store, {
        // The loop takes the checkpoint after its 32nd call.
        before: async () =>
          await dieIf(
            (moment === 'before' && world.gateway.executed.length >= 32) ||
              (moment === 'later' && (await isSaved())),
          ),
        after: async () => await dieIf(moment === 'after' && (await isSaved())),
      });
    },
  });
  return { died };
}

describe('an agent with a checkpoint', () => {
  it('loses and duplicates nothing when its worker crashes around the commit, and then replays only a part of its journal (RT-1, AG-8)', async () => {
    const whole = await undisturbed();
    for (const moment of ['before', 'after', 'later'] as const) {
      const world = await startWorld();
      const { died } = await startCrashing(world, moment);
      await world.deliver({ manifest: MANIFEST });
      await died;
      const { store } = await world.startWorker(FROZEN);
      await world.until('COMPLETED');
      expect(world.meter.paid).toEqual(whole.meter.paid);
      expect(asked(world)).toEqual(asked(whole));
      expect(world.gateway.executed).toEqual(whole.gateway.executed);
      expect([...new Set(world.supervisor.receipts)]).toEqual([
        ...new Set(whole.supervisor.receipts),
      ]);
      const snapshot = await findSnapshot(store.db, KEY);
      const read = await loadJournal(store.db, KEY, snapshot?.segment ?? 1);
      // Tools and history before the checkpoint, and at most three steps after it.
      expect(read.length).toBeLessThan(15);
      const turns = await loadItems(store.db, KEY, snapshot?.items_from ?? 0);
      expect(turns.length).toBeLessThan(32);
      expect(snapshot?.items).toBe(65);
      // The history also contains the turns outside the window (AG-8): the message, 34 exchanges of two turns each, and
      // the answer.
      const history = await store.db.selectFrom('history').select('turn').execute();
      expect(history.length).toBe(70);
    }
  });
});

describe('chat middleware of an agent with a checkpoint', () => {
  it('does not answer a call after the checkpoint from answers before it (AG-9, RT-1)', async () => {
    let calls = 0;
    const model = () => {
      calls += 1;
      return `answer ${calls}`;
    };
    const world = await World.start({ model });
    world.supervisor.rule = approveAll;
    const run = async (ctx: AgentContext) => {
      const messages = [{ role: 'user', text: 'Hello.' }] as const;
      const ask = { model: 'small', messages, json: false, requireContent: false };
      await ctx.llm(ask);
      if ((await ctx.restore()) === undefined) ctx.checkpoint({ state: {} });
      const answer = await ctx.llm(ask);
      await ctx.sleepUntilSignal('go');
      await ctx.reply(answer.kind === 'answer' ? answer.text : '');
    };
    const custom = (_: unknown, id: string) => ({ id, kind: 'custom', run });
    await world.startWorker({}, { agents: { custom } });
    const chatMiddleware = [{ name: 'cache' }];
    await world.deliver({ manifest: { kind: AgentKind.CUSTOM, chatMiddleware } });
    await world.until('SUSPENDED');
    const agentInstance = AGENT.instance;
    const signal = { requestId: 'go', tenant: TENANT, runId: RUN, agentInstance, name: 'go' };
    await world.worker.signal(signal);
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toBe('answer 2');
    expect(world.meter.paid).toHaveLength(2);
  });
});

describe('an agent whose journal starts at a checkpoint', () => {
  /** How the code of the agent differs when the agent is replayed. */
  interface Changes {
    prologue?: readonly string[];
    restores?: boolean;
    next?: string;
  }

  async function outcomeOf(inReplay: Changes): Promise<string> {
    const world = await World.start();
    let changes: Changes = {};
    const agents = {
      react: (): Agent => ({
        id: AGENT.instance,
        kind: 'react',
        async run(ctx) {
          const { prologue = ['begins'], restores = true, next = 'continues' } = changes;
          for (const word of prologue) ctx.log(word);
          const restored = restores ? await ctx.restore() : undefined;
          if (restored === undefined) {
            ctx.log('works');
            ctx.checkpoint({ state: { worked: true }, added: ['once'] });
          }
          ctx.log(next);
          await ctx.sleepUntilSignal('go');
          ctx.stop({ stopReason: `error:${(restored?.items ?? []).join()}`, phase: 'worker' });
        },
      }),
    };
    await world.startWorker({}, { agents });
    await world.deliver({ manifest: { kind: AgentKind.REACT } });
    await world.until('SUSPENDED');
    changes = inReplay;
    const agentInstance = AGENT.instance;
    await world.worker.signal({
      requestId: 'go',
      tenant: TENANT,
      runId: RUN,
      agentInstance,
      name: 'go',
    });
    if (Object.keys(inReplay).length > 0) return (await world.untilCodeWait()).detail;
    await world.until('ERROR');
    return world.supervisor.reports[0]?.stopReason ?? '';
  }

  it('restores its state and items when it does not diverge (RT-1)', async () => {
    expect(await outcomeOf({})).toBe('error:once');
  });

  it('is parked with the position when it diverges after the checkpoint (RT-1)', async () => {
    expect(await outcomeOf({ next: 'turns' })).toMatch(
      /diverges from its journal at index 2: recorded log/,
    );
  });

  it('is parked when it restores the checkpoint at a later position (RT-1)', async () => {
    expect(await outcomeOf({ prologue: ['begins', 'again'] })).toMatch(
      /diverges from its journal at index 1: it restored its checkpoint there, but now it requested log/,
    );
  });

  it('is parked when it restores the checkpoint at an earlier position (RT-1)', async () => {
    expect(await outcomeOf({ prologue: [] })).toMatch(
      /diverges from its journal at index 1: .*now it did so at index 0/,
    );
  });

  it('is parked when it requests another operation instead of restoring the checkpoint (RT-1)', async () => {
    expect(await outcomeOf({ restores: false })).toMatch(
      /diverges from its journal at index 1: .*now it requested log/,
    );
  });
});
