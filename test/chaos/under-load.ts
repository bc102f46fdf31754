import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type DistributedPlatform, startDistributedPlatform } from '@writ/testing/distributed';
import { describeHookStreams } from '@writ/testing/nats';
import { seeded } from '../load/random.ts';
import { restart } from './faults/disturbance.ts';
import { INVARIANTS } from './invariants/index.ts';
import type { Evidence } from './invariants/invariant.ts';
import { combinedExample } from './load/combined-example.ts';
import { Load } from './load/load.ts';

/** The load on the platform. */
export interface LoadOptions {
  readonly seed: number;
  /** Runs in flight at the same time. */
  readonly inFlight: number;
  /** Total number of runs; default unlimited. */
  readonly runs?: number;
}

/** The outcome of a test under load. */
export interface LoadReport<T> {
  readonly outcome: T;
  readonly load: Load;
  /** Time from the end of the disturbances until every run had ended, milliseconds. */
  readonly endedAfterMs: number;
  /** Broken invariants with the ids concerned; empty when every invariant holds. */
  readonly violations: readonly string[];
  /** The seed, the state of the hook stream and the last log lines of each replica. */
  readonly diagnostics: string;
}

/** Liveness limit for the runs in flight after all faults have ended. */
const END_WITHIN_MS = 180_000;
/** Liveness limit for events, receipts and audit records that follow the end of a run. */
const SETTLE_WITHIN_MS = 60_000;

/**
 * Runs `disturb` against two replicas of every service under load. Then ends every fault, waits for all
 * runs to end and checks every invariant.
 */
export async function underLoad<T>(
  { seed, inFlight, runs }: LoadOptions,
  disturb: (evidence: Evidence) => Promise<T>,
): Promise<LoadReport<T>> {
  const folder = mkdtempSync(join(tmpdir(), 'writ-chaos-'));
  let platform: DistributedPlatform | undefined;
  const giveUp = new AbortController();
  try {
    platform = await startDistributedPlatform({
      example: combinedExample(join(folder, 'example')),
      // A short lease lets another worker take over quickly.
      env: { WRIT_WORKER_LEASE_TTL: '3s' },
    });
    const load = new Load(platform, seeded(seed + 1), runs);
    const driven = load.drive(inFlight, giveUp.signal);
    driven.catch(() => undefined);
    const outcome = await disturb({ platform, load });
    if (runs === undefined) load.stop();
    await recover(platform);
    const recoveredAt = performance.now();
    const giveUpTimer = setTimeout(
      () => giveUp.abort(new Error('runs did not end')),
      END_WITHIN_MS,
    );
    const failure = await driven.then(() => undefined).catch((error: unknown) => error);
    clearTimeout(giveUpTimer);
    const endedAfterMs = performance.now() - recoveredAt;
    const violations = await findViolations({ platform, load });
    if (failure !== undefined) violations.push(`runs: ${String(failure)}`);
    const state = await describeHookStreams(platform.nats, 'p-supervisor').catch(String);
    const diagnostics = `Seed ${seed}\n${state}\n${lastLogLines(platform)}`;
    return { outcome, load, endedAfterMs, violations, diagnostics };
  } finally {
    giveUp.abort();
    await platform?.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Throws an Error that names each broken invariant. */
export function assertNoViolations({ violations, diagnostics }: LoadReport<unknown>): void {
  assert.ok(violations.length === 0, `${violations.join('\n')}\n${diagnostics}`);
}

async function recover(platform: DistributedPlatform): Promise<void> {
  platform.heal();
  await Promise.all(platform.replicas.map((replica) => restart(replica)));
}

/** Checks every invariant; retries until all hold or {@link SETTLE_WITHIN_MS} has passed. */
async function findViolations(evidence: Evidence): Promise<string[]> {
  const until = performance.now() + SETTLE_WITHIN_MS;
  for (;;) {
    const found: string[] = [];
    for (const { holds, violations } of INVARIANTS) {
      const lines = await violations(evidence);
      if (lines.length > 0) found.push(`${holds}:`, ...lines.slice(0, 20).map((it) => `  ${it}`));
    }
    if (found.length === 0 || performance.now() > until) return found;
    await pause(500);
  }
}

function lastLogLines({ replicas }: DistributedPlatform): string {
  return replicas
    .map(
      ({ name, log }) =>
        `${name}:\n${log
          .slice(-5)
          .map((line) => line.slice(0, 600))
          .join('\n')}`,
    )
    .join('\n');
}
