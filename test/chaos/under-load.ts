import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isWritError } from '@writ/kernel';
import { type DistributedPlatform, startDistributedPlatform } from '@writ/testing/distributed';
import { isFakeClockAvailable, isSmallDiskAvailable } from '@writ/testing/faults';
import { describeHookStreams } from '@writ/testing/nats';
import { seeded } from '@writ/testing/random';
import { startHostileServer } from '../attacks/hostile-server.ts';
import { restart, type Scene } from './faults/disturbance.ts';
import { INVARIANTS } from './invariants/index.ts';
import type { Evidence } from './invariants/invariant.ts';
import { findStranded } from './invariants/nothing-stranded.ts';
import { Attacker } from './load/attacker.ts';
import { combinedExample } from './load/combined-example.ts';
import { Load } from './load/load.ts';

/** The load on the platform. */
export interface LoadOptions {
  readonly seed: number;
  /** Runs in flight at the same time. */
  readonly inFlight: number;
  /** Total number of runs; default unlimited. */
  readonly runs?: number;
  /** Replicas of each service; default 2. */
  readonly replicas?: number | undefined;
  /**
   * Enables clock and disk faults and the models and tools of the attacker, and starts runs that wait for a person
   * during all faults.
   */
  readonly hostile?: HostileOptions;
}

/** Options of a test with clock and disk faults and an attacker. */
export interface HostileOptions {
  /** Maximum time after the end of all faults until only waiting runs hold resources, milliseconds. */
  readonly strandedWithinMs: number;
}

/** The outcome of a test under load. */
export interface LoadReport<T> {
  readonly outcome: T;
  readonly load: Load;
  /** Time from the end of the disturbances until every run had ended, milliseconds. */
  readonly endedAfterMs: number;
  /** Time from the end of the disturbances until nothing was stranded, milliseconds; zero when not checked. */
  readonly freeAfterMs: number;
  /** Broken invariants with the ids concerned; empty when every invariant holds. */
  readonly violations: readonly string[];
  /** The seed, the state of the hook stream and the last log lines of each replica. */
  readonly diagnostics: string;
}

/** Liveness limit for the runs in flight after all faults have ended. */
const END_WITHIN_MS = 180_000;
/** Liveness limit for events, receipts and audit records that follow the end of a run. */
const SETTLE_WITHIN_MS = 60_000;

/** Runs that wait for a person during all faults. */
const PATIENT_RUNS = 3;
/** Size of the file system that contains all tables, larger than the data that a test writes. */
const DISK_MB = 512;

/**
 * Runs `disturb` against the replicas of every service under load. Then ends every fault, checks (only with the option
 * `hostile`) that only waiting runs hold resources, waits for all runs to end and checks every invariant.
 */
export async function underLoad<T>(
  { seed, inFlight, runs, replicas = 2, hostile }: LoadOptions,
  disturb: (scene: Scene) => Promise<T>,
): Promise<LoadReport<T>> {
  const opened = new AsyncDisposableStack();
  const giveUp = new AbortController();
  try {
    const { platform, server } = await openPlatform(opened, replicas, hostile !== undefined);
    const load = new Load(platform, seeded(seed + 1), runs);
    const driven = load.drive(inFlight, giveUp.signal);
    driven.catch(() => undefined);
    if (hostile !== undefined) await load.startPatient(PATIENT_RUNS);
    const attacker = await Attacker.enter(platform, server, giveUp.signal);
    const outcome = await disturb({ platform, load, attacker });
    if (runs === undefined) load.stop();
    await recover(platform);
    const recoveredAt = performance.now();
    const stranded = hostile === undefined ? [] : await findStrandedAfter(platform, load, hostile);
    const freeAfterMs = hostile === undefined ? 0 : performance.now() - recoveredAt;
    load.release();
    const failure = await failureOf(driven, giveUp);
    const endedAfterMs = performance.now() - recoveredAt;
    const violations = [...stranded, ...(await findViolations({ platform, load }))];
    if (failure !== undefined) violations.push(`runs: ${String(failure)}`);
    const state = await describeHookStreams(platform.nats, 'p-supervisor').catch(String);
    const diagnostics = `Seed ${seed}\n${state}\n${lastLogLines(platform)}`;
    return { outcome, load, endedAfterMs, freeAfterMs, violations, diagnostics };
  } finally {
    giveUp.abort();
    await opened.disposeAsync();
  }
}

/**
 * Waits for all runs, at most {@link END_WITHIN_MS}; returns the error when they fail or do not end in time, otherwise
 * undefined.
 */
async function failureOf(driven: Promise<void>, giveUp: AbortController): Promise<unknown> {
  const timer = setTimeout(() => giveUp.abort(new Error('runs did not end')), END_WITHIN_MS);
  const failure = await driven.then(() => undefined).catch((error: unknown) => error);
  clearTimeout(timer);
  return failure;
}

async function openPlatform(opened: AsyncDisposableStack, replicas: number, isHostile: boolean) {
  const folder = mkdtempSync(join(tmpdir(), 'writ-chaos-'));
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  const server = await startHostileServer();
  opened.defer(() => server.close());
  const platform = await startDistributedPlatform({
    example: combinedExample(join(folder, 'example'), isHostile ? server.url : undefined),
    replicas,
    // A short lease lets another worker take over quickly.
    env: { WRIT_WORKER_LEASE_TTL: '3s' },
    fakeClocks: isHostile && isFakeClockAvailable(),
    ...(isHostile && isSmallDiskAvailable() && { diskMb: DISK_MB }),
  });
  opened.defer(() => platform.close());
  return { platform, server };
}

/**
 * Waits until no run is stranded, at most `strandedWithinMs`. Returns the runs that are still stranded and the runs
 * that have ended although they must wait for a person; empty when there are none.
 */
async function findStrandedAfter(
  platform: DistributedPlatform,
  { patient }: Load,
  { strandedWithinMs }: HostileOptions,
): Promise<string[]> {
  const until = performance.now() + strandedWithinMs;
  for (;;) {
    const found = await findStranded(platform);
    if (found.length === 0 || performance.now() > until) {
      const lines = [...found, ...(await lostPatients(platform, patient))];
      if (lines.length === 0) return [];
      const what = `only waiting runs hold resources ${strandedWithinMs / 1_000} s after the end of all faults (BD-3)`;
      return [`${what}:`, ...lines.slice(0, 20).map((line) => `  ${line}`)];
    }
    await pause(500);
  }
}

/** Returns one line for each run that must still wait for a person but has ended. */
async function lostPatients(
  platform: DistributedPlatform,
  patient: readonly string[],
): Promise<string[]> {
  const rows = await platform.rows(
    'supervisor',
    'select run_id, state from runs where run_id = any($1) and ended_at is not null',
    [patient],
  );
  return rows.map(({ run_id: id, state }) => `${id} waited for a person and is ${state}`);
}

/** Throws an Error that names each broken invariant. */
export function assertNoViolations({ violations, diagnostics }: LoadReport<unknown>): void {
  assert.ok(violations.length === 0, `${violations.join('\n')}\n${diagnostics}`);
}

async function recover(platform: DistributedPlatform): Promise<void> {
  platform.heal();
  platform.disk?.free();
  await Promise.all(platform.replicas.map((replica) => restart(replica)));
}

/** Checks every invariant; retries until all hold or {@link SETTLE_WITHIN_MS} has passed. */
async function findViolations(evidence: Evidence): Promise<string[]> {
  const until = performance.now() + SETTLE_WITHIN_MS;
  for (;;) {
    const found: string[] = [];
    for (const { holds, violations } of INVARIANTS) {
      const lines = await violations(evidence).catch(retryable);
      if (lines.length > 0) found.push(`${holds}:`, ...lines.slice(0, 20).map((it) => `  ${it}`));
    }
    if (found.length === 0 || performance.now() > until) return found;
    await pause(500);
  }
}

/**
 * Returns the message of an error of kind unavailable, such as AUDIT_CHAIN_LAGGING, because the error is a violation
 * only when it persists; throws any other error.
 */
function retryable(error: unknown): string[] {
  if (isWritError(error) && error.kind === 'unavailable') return [error.message];
  throw error;
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
