import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ServiceName } from '@writ/identity';
import { until } from '../e2e/scripted/until.ts';
import { assertUndone, assertWhole } from './order-checks.ts';
import type { HoldOrder, OrderNews } from './order-platform.ts';
import { OrderRun, type OrderStage, openStage } from './order-run.ts';
import { COMPILE_CACHE } from './program.ts';
import { seeded } from './random.ts';

interface Platform {
  readonly stage: OrderStage;
  hold(stops: readonly string[]): void;
  /** Where a run is held; resolves when it is. */
  held(run: OrderRun): Promise<unknown>;
  /** The calls that a run led to, in their order. */
  calls(run: OrderRun): readonly string[];
  /** kill -9. */
  kill(): Promise<void>;
}

/**
 * The platform is killed while as many runs as there are calls in a run's orders are held at one of them
 * each, before it is made or after it is answered; then it is started again. Every order is driven to its
 * end from where it was: each run has made one child, ended it, and given everything back; those that
 * are cancelled while they are set up leave nothing behind (SUP-8, SUP-9).
 * The calls are taken from a run that nobody holds, so that a new step is tried by itself.
 */
export async function orderKills({ furtherKills = 0, seed = 1 }) {
  const dataDir = await mkdtemp(join(tmpdir(), 'writ-orders-'));
  const random = seeded(seed);
  let platform: Platform | undefined;
  try {
    platform = await start(dataDir);
    const free = new OrderRun('free');
    await free.drive(platform.stage);
    const stops = platform.calls(free).flatMap((call) => [`before ${call}`, `after ${call}`]);
    const setUp = stops.slice(0, stops.indexOf('before ExecutionMeterService.Freeze 1'));
    platform.hold([...stops, ...setUp]);
    const runs = stops.map((_, index) => new OrderRun(`run-${index}`));
    const unwanted = setUp.map((_, index) => new OrderRun(`unwanted-${index}`));
    await holdAll(platform, [...runs, ...unwanted]);
    await platform.kill();
    for (let kill = 0; kill < furtherKills; kill += 1) {
      platform = await start(dataDir);
      const { stage } = platform;
      const going = Promise.allSettled(runs.map((run) => run.drive(stage)));
      await pause(random() * 1_500);
      await platform.kill();
      await going;
    }
    platform = await start(dataDir);
    const { stage } = platform;
    await Promise.all([
      ...unwanted.map((run) => run.cancel(stage)),
      ...runs.map((run) => run.drive(stage)),
    ]);
    await Promise.all(unwanted.map((run) => assertUndone(stage, dataDir, run)));
    await Promise.all([free, ...runs].map((run) => assertWhole(stage, dataDir, run)));
    return {
      'steps at which it was killed': stops.length,
      'runs undone in the middle': unwanted.length,
      'times killed': 1 + furtherKills,
    };
  } finally {
    await platform?.kill();
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** Begins the runs one after the other, so that each is held where it should be. */
async function holdAll(platform: Platform, runs: readonly OrderRun[]): Promise<void> {
  const failures: unknown[] = [];
  const held = runs.map(async (run) => {
    await run.begin(platform.stage);
    let isHeld = false;
    const driving = run.drive(platform.stage).then(
      () => failures.push(new Error(`${run.name} was never held.`)),
      // A call that waits for what is held gives up some time.
      (error: unknown) => isHeld || failures.push(error),
    );
    await Promise.race([
      platform.held(run).then(() => {
        isHeld = true;
      }),
      driving,
    ]);
  });
  await Promise.all(held);
  assert.deepEqual(failures, []);
}

async function start(dataDir: string): Promise<Platform> {
  const file = fileURLToPath(new URL('order-platform.ts', import.meta.url));
  const child: ChildProcess = fork(file, {
    execArgv: [],
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, WRIT_DATA: dataDir },
  });
  const exited = once(child, 'exit');
  const news: OrderNews[] = [];
  child.on('message', (each: OrderNews) => news.push(each));
  const up = await until('the platform', () => news.find(({ kind }) => kind === 'up'));
  assert.ok(up.kind === 'up');
  const { edgeUrl, apiKey } = up;
  const addresses = up.addresses as Record<ServiceName, string>;
  const stage = await openStage({ dataDir, edgeUrl, apiKey, addresses });
  return {
    stage,
    hold: (stops) => child.send({ stops } satisfies HoldOrder),
    held: (run) =>
      until(`${run.name} to be held`, () =>
        news.find((each) => each.kind === 'held' && each.runId === run.runId),
      ),
    calls: (run) =>
      news.flatMap((each) => (each.kind === 'call' && each.runId === run.runId ? [each.call] : [])),
    async kill() {
      stage.close();
      child.kill('SIGKILL');
      await exited;
    },
  };
}
