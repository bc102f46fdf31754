import { AgentState } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { describe, expect, it, vi } from 'vitest';
import { openWorkerStore } from '../src/store/worker-store.ts';
import { RUN } from './delivery.ts';
import { InterceptedStore } from './intercepted-store.ts';
import { approveAll, gatherTeam, LEAD, teamModel } from './team.ts';
import { WorkerProcess } from './worker-process.ts';
import { World } from './world.ts';

/** A team's worker dies at every boundary of one run and is started again: nothing is lost or doubled. */

/** An abandoned worker takes up nothing more, and keeps its leases for longer than a test takes. */
const FROZEN = { maxConcurrentAgents: 3, leaseTtlMs: 3_600_000 } as const;

async function startWorld(): Promise<World> {
  const world = await World.start({ model: teamModel, inFile: true });
  gatherTeam(world);
  return world;
}

async function driveToEnd(world: World, isOver: () => boolean = () => false): Promise<void> {
  await world.deliver({ manifest: LEAD });
  await vi.waitFor(
    async () => {
      if (!isOver()) expect((await world.describe()).state).toBe(AgentState.COMPLETED);
    },
    { interval: 5, timeout: 30_000 },
  );
}

async function survive(world: World, died: Promise<unknown>): Promise<void> {
  let isDead = false;
  const death = died.then(() => {
    isDead = true;
  });
  await Promise.race([death, driveToEnd(world, () => isDead).catch(() => death)]);
  await death;
  await world.startWorker(FROZEN);
  await driveToEnd(world);
}

/** What the world saw, in an order that does not depend on who was faster. */
function seen(world: World) {
  return {
    answer: world.supervisor.endings.get(RUN)?.answer,
    paid: world.meter.paid.toSorted(),
    decided: world.supervisor.decided.toSorted(),
    executed: world.gateway.executed.toSorted(),
    ended: world.supervisor.ended.toSorted(),
  };
}

let undisturbed: ReturnType<typeof seen> | undefined;
let commits = 0;

async function expectUndisturbed(world: World): Promise<void> {
  if (undisturbed === undefined) {
    const calm = await startWorld();
    const worker = await calm.startWorker(FROZEN);
    await driveToEnd(calm);
    undisturbed = seen(calm);
    commits = worker.store.commits;
  }
  expect(seen(world)).toEqual(undisturbed);
}

describe('the worker of a team that dies', () => {
  it('is over after one answer, with each child asked and ended once (AG-3, RT-1)', async () => {
    const world = await startWorld();
    await world.startWorker(FROZEN);
    await driveToEnd(world);
    await expectUndisturbed(world);
    expect(undisturbed?.answer).toBe('Both said: reader is done and counter is done.');
    expect(undisturbed?.executed).toHaveLength(2);
    expect(undisturbed?.ended).toEqual(['counter-1 replied', 'reader-1 replied']);
    // How agents share commits with each other depends on who is faster.
    expect(commits).toBeGreaterThan(10);
  });

  // After one commit is mostly before the next one, so that some will do.
  for (const [moment, each] of [
    ['before', 1],
    ['after', 3],
  ] as const) {
    for (let commit = each; commit <= 20; commit += each) {
      it(`right ${moment} commit ${commit} loses and doubles nothing (RT-1, RT-3)`, async () => {
        const world = await startWorld();
        const { promise: died, resolve } = Promise.withResolvers<void>();
        const die = async (n: number) => {
          if (n < commit) return;
          resolve();
          await world.faults.untilReleased();
          throw new Error('The worker is dead.');
        };
        const death =
          moment === 'before' ? { before: die } : { before: (n: number) => die(n - 1), after: die };
        await world.startWorker(FROZEN, {
          openStore: async (location) =>
            new InterceptedStore(await openWorkerStore(location), death),
        });
        // The last of them may not come when agents happened to share some.
        void world.until('COMPLETED').then(
          () => resolve(),
          () => undefined,
        );
        await survive(world, died);
        await expectUndisturbed(world);
      });
    }
  }

  it('by kill -9 goes on where each of its agents was (RT-1, RT-2)', async () => {
    const world = await startWorld();
    const { promise: reached, resolve } = Promise.withResolvers<void>();
    world.supervisor.rule = (raw) => {
      resolve();
      return approveAll(raw);
    };
    const child = await WorkerProcess.start(world);
    world.callWorkerAt(child.address);
    let isDead = false;
    const driving = driveToEnd(world, () => isDead).catch(() => undefined);
    await reached;
    isDead = true;
    await child.kill();
    await driving;
    await world.startWorker();
    await driveToEnd(world);
    await expectUndisturbed(world);
  });
});
