import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ServiceName } from '@writ/identity';
import { seeded } from '@writ/testing/random';
import { until } from '../e2e/scripted/until.ts';
import { assertCompleted, assertReleased } from './order-checks.ts';
import type { HoldCommand, PlatformMessage } from './order-platform.ts';
import { type OrderHarness, OrderRun, openHarness } from './order-run.ts';
import { COMPILE_CACHE } from './program.ts';

interface Platform {
  readonly harness: OrderHarness;
  hold(stops: readonly string[]): void;
  /** Resolves when a run is held. */
  held(run: OrderRun): Promise<unknown>;
  /** The calls of a run in their order. */
  calls(run: OrderRun): readonly string[];
  /** kill -9. */
  kill(): Promise<void>;
}

/**
 * Holds one run at each point before and after every call of a run's orders, kills the platform, and restarts it. Every
 * order resumes where it was interrupted and completes: each run spawns one child, ends it and releases every resource;
 * runs that are cancelled during setup release their resources (SUP-8, SUP-9). The points are recorded from a run that
 * is not held, so a new step is covered without a change here.
 */
export async function orderKills({ furtherKills = 0, seed = 1 }) {
  const dataDir = await mkdtemp(join(tmpdir(), 'writ-orders-'));
  const random = seeded(seed);
  let platform: Platform | undefined;
  try {
    platform = await start(dataDir);
    const free = new OrderRun('free');
    await free.drive(platform.harness);
    const stops = platform.calls(free).flatMap((call) => [`before ${call}`, `after ${call}`]);
    const setUp = stops.slice(0, stops.indexOf('before ExecutionMeterService.Freeze 1'));
    platform.hold([...stops, ...setUp]);
    const runs = stops.map((_, index) => new OrderRun(`run-${index}`));
    const unwanted = setUp.map((_, index) => new OrderRun(`unwanted-${index}`));
    await holdAll(platform, [...runs, ...unwanted]);
    await platform.kill();
    for (let kill = 0; kill < furtherKills; kill += 1) {
      platform = await start(dataDir);
      const { harness } = platform;
      const driving = Promise.allSettled(runs.map((run) => run.drive(harness)));
      await pause(random() * 1_500);
      await platform.kill();
      await driving;
    }
    platform = await start(dataDir);
    const { harness } = platform;
    await Promise.all([
      ...unwanted.map((run) => run.cancel(harness)),
      ...runs.map((run) => run.drive(harness)),
    ]);
    await Promise.all(unwanted.map((run) => assertReleased(harness, dataDir, run)));
    await Promise.all([free, ...runs].map((run) => assertCompleted(harness, dataDir, run)));
    return {
      'kill points': stops.length,
      'runs completed': runs.length + 1,
      'runs cancelled during setup': unwanted.length,
      kills: 1 + furtherKills,
    };
  } finally {
    await platform?.kill();
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** Starts the runs and resolves when each is held at its point. */
async function holdAll(platform: Platform, runs: readonly OrderRun[]): Promise<void> {
  const failures: unknown[] = [];
  const held = runs.map(async (run) => {
    await run.begin(platform.harness);
    let isHeld = false;
    // A call that waits for a held order times out eventually, and then the run may continue.
    const driving = run
      .drive(platform.harness, () => isHeld)
      .then(
        () => isHeld || failures.push(new Error(`${run.name} was never held.`)),
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
  const messages: PlatformMessage[] = [];
  child.on('message', (message: PlatformMessage) => messages.push(message));
  const started = await until('the platform', () =>
    messages.find(({ kind }) => kind === 'started'),
  );
  assert.ok(started.kind === 'started');
  const { edgeUrl, apiKey } = started;
  const addresses = started.addresses as Record<ServiceName, string>;
  const harness = await openHarness({ dataDir, edgeUrl, apiKey, addresses });
  return {
    harness,
    hold: (stops) => child.send({ stops } satisfies HoldCommand),
    held: (run) =>
      until(`${run.name} to be held`, () =>
        messages.find((message) => message.kind === 'held' && message.runId === run.runId),
      ),
    calls: (run) =>
      messages.flatMap((message) =>
        message.kind === 'call' && message.runId === run.runId ? [message.call] : [],
      ),
    async kill() {
      harness.close();
      child.kill('SIGKILL');
      await exited;
    },
  };
}
