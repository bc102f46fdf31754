import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { AgentState } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { describe, expect, it, vi } from 'vitest';
import { openWorkerStore } from '../src/store/worker-store.ts';
import { type ManifestFields, RUN } from './delivery.ts';
import type { FakeModel } from './fake-meter.ts';
import { crashAt, InterceptedStore } from './intercepted-store.ts';
import { approveAll, gatherTeam, LEAD, teamModel } from './team.ts';
import { WorkerProcess } from './worker-process.ts';
import { World } from './world.ts';

/**
 * For a react agent, an orchestrator and a flow, these tests crash the worker before each of the first `commits`
 * commits of a run, and after some of them, and then start another worker. No effect may be lost or duplicated.
 */

/** Settings of a worker that a test abandons: it runs at most three agents, and its leases outlast the test. */
const FROZEN = { maxConcurrentAgents: 3, leaseTtlMs: 3_600_000 } as const;

/** A run of one kind of agent, with its sub-agents. */
interface Scenario {
  readonly manifest: Partial<ManifestFields>;
  readonly model: FakeModel;
  readonly answer: string;
  readonly executed: number;
  readonly children: readonly string[];
  /**
   * Number of commits at which the worker crashes. The actual number of commits depends on timing: agents may share a
   * commit, and a parent that is suspended again before the next reply of a child causes one more claim and one more
   * suspension.
   */
  readonly commits: number;
  /**
   * Interval between the commits after which the worker crashes: with 3, it crashes after commit 3, 6, 9 and so on. A
   * crash after one commit is usually equivalent to a crash before the next commit.
   */
  readonly afterEach: number;
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  react: {
    manifest: { kind: AgentKind.REACT, tools: ['get_refund_context'] },
    // The agent has the instance of the lead; with the instance `alone-1`, the model gives it the answers of a child.
    model: (prompt, request) => teamModel(prompt, request, 'alone-1'),
    answer: 'alone is done',
    executed: 1,
    children: [],
    commits: 2,
    afterEach: 1,
  },
  orchestrator: {
    manifest: LEAD,
    model: teamModel,
    answer: 'Both reported: reader is done and counter is done.',
    executed: 2,
    children: ['counter-1 replied', 'reader-1 replied'],
    commits: 15,
    afterEach: 3,
  },
  flow: {
    manifest: {
      ...LEAD,
      kind: AgentKind.FLOW,
      subAgents: [{ name: 'reader' }, { name: 'counter' }, { name: 'closer' }],
      optionsJson: '{"steps":[{"parallel":["reader","counter"]},"closer"]}',
    },
    model: teamModel,
    answer: 'closer is done',
    executed: 3,
    children: ['closer-1 replied', 'counter-1 replied', 'reader-1 replied'],
    commits: 24,
    afterEach: 3,
  },
};

async function startWorld({ model }: Scenario): Promise<World> {
  const world = await World.start({ model, inFile: true });
  gatherTeam(world);
  return world;
}

async function driveToEnd(
  world: World,
  { manifest }: Scenario,
  isOver: () => boolean = () => false,
): Promise<void> {
  await world.deliver({ manifest });
  await vi.waitFor(
    async () => {
      if (!isOver()) expect((await world.describe()).state).toBe(AgentState.COMPLETED);
    },
    { interval: 5, timeout: 30_000 },
  );
}

async function survive(world: World, scenario: Scenario, died: Promise<unknown>): Promise<void> {
  let isDead = false;
  const death = died.then(() => {
    isDead = true;
  });
  await Promise.race([death, driveToEnd(world, scenario, () => isDead).catch(() => death)]);
  await death;
  await world.startWorker(FROZEN);
  await driveToEnd(world, scenario);
}

/** Returns the observed effects, sorted so that their order does not depend on timing. */
function seen(world: World) {
  return {
    answer: world.supervisor.endings.get(RUN)?.answer,
    paid: world.meter.paid.toSorted(),
    decided: world.supervisor.decided.toSorted(),
    executed: world.gateway.executed.toSorted(),
    ended: world.supervisor.ended.toSorted(),
  };
}

/** A worker commits the start of a step after this time at the latest, unless another commit includes it. */
const COMMIT_DELAY_MS = 250;

/** Effects and commits of a run without a crash. */
interface Undisturbed extends ReturnType<typeof seen> {
  readonly commits: number;
  /** Maximum number of commits that were made only because an agent needed longer than {@link COMMIT_DELAY_MS}. */
  readonly delayedCommits: number;
}

const undisturbed = new Map<Scenario, Undisturbed>();

/** Returns the effects and the number of commits of a run without a crash. */
async function runWithoutCrash(scenario: Scenario) {
  const known = undisturbed.get(scenario);
  if (known !== undefined) return known;
  const world = await startWorld(scenario);
  const worker = await world.startWorker(FROZEN);
  const begun = performance.now();
  await driveToEnd(world, scenario);
  const agents = scenario.children.length + 1;
  const delayedCommits = agents * Math.floor((performance.now() - begun) / COMMIT_DELAY_MS);
  const found = { ...seen(world), commits: worker.store.commits, delayedCommits };
  undisturbed.set(scenario, found);
  return found;
}

async function expectUndisturbed(world: World, scenario: Scenario): Promise<void> {
  expect(await runWithoutCrash(scenario)).toMatchObject(seen(world));
}

describe.each(Object.entries(SCENARIOS))('a worker that crashes with a %s agent', (_, scenario) => {
  it('asks and ends each child once and completes in a run without a crash (AG-1, AG-3, RT-1)', async () => {
    const { answer, executed, ended, commits, delayedCommits } = await runWithoutCrash(scenario);
    expect(answer).toBe(scenario.answer);
    expect(executed).toHaveLength(scenario.executed);
    expect(ended).toEqual(scenario.children);
    expect(commits - delayedCommits).toBeLessThan(scenario.commits * 2);
    expect(commits).toBeGreaterThan(scenario.commits / 2);
  });

  for (const [moment, each] of [
    ['before', 1],
    ['after', scenario.afterEach],
  ] as const) {
    for (let commit = each; commit <= scenario.commits; commit += each) {
      it(`immediately ${moment} commit ${commit} loses and duplicates nothing (RT-1, RT-3)`, async () => {
        const world = await startWorld(scenario);
        const { hooks, died } = crashAt(world.faults, moment, commit);
        await world.startWorker(FROZEN, {
          openStore: async (location) =>
            new InterceptedStore(await openWorkerStore(location), hooks),
        });
        // The run may end before this commit when agents share commits.
        const ended = world.until('COMPLETED').catch(() => died);
        await survive(world, scenario, Promise.race([died, ended]));
        await expectUndisturbed(world, scenario);
      });
    }
  }

  it('after SIGKILL resumes each of its agents (RT-1, RT-2)', async () => {
    const world = await startWorld(scenario);
    const { promise: reached, resolve } = Promise.withResolvers<void>();
    world.supervisor.rule = (raw) => {
      resolve();
      return approveAll(raw);
    };
    const child = await WorkerProcess.start(world);
    world.callWorkerAt(child.address);
    let isDead = false;
    const driving = driveToEnd(world, scenario, () => isDead).catch(() => undefined);
    await reached;
    isDead = true;
    await child.kill();
    await driving;
    await world.startWorker();
    await driveToEnd(world, scenario);
    await expectUndisturbed(world, scenario);
  });
});
