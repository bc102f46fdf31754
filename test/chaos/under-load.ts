import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type DistributedPlatform, startDistributedPlatform } from '@writ/testing/distributed';
import { describeHookStreams } from '@writ/testing/nats';
import { seeded } from '../load/random.ts';
import { startAgain } from './faults/disturbance.ts';
import { INVARIANTS } from './invariants/index.ts';
import type { Evidence } from './invariants/invariant.ts';
import { bothDesks } from './load/both-desks.ts';
import { Load } from './load/load.ts';

/** The load that a platform is under. */
export interface LoadOptions {
  readonly seed: number;
  /** Runs under way at the same time. */
  readonly inFlight: number;
  /** Runs in all; as many as there is time for when not given. */
  readonly runs?: number;
}

/** What came of it. */
export interface LoadReport<T> {
  readonly outcome: T;
  readonly load: Load;
  /** From the mending until every run had ended, milliseconds. */
  readonly endedAfterMs: number;
}

/** How long runs may take to end once everything is well again. */
const END_WITHIN_MS = 180_000;
/** How long what follows an ending may take: events, receipts, audit. */
const SETTLE_WITHIN_MS = 60_000;

/**
 * Two replicas of every service, with both desks at work, while `disturb` does what it does to them.
 * Then everything is mended, every run ends, and every invariant is checked.
 * @throws Error naming each broken invariant, the ids concerned and the seed
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
      example: bothDesks(join(folder, 'example')),
      // What a killed worker held is taken over soon.
      env: { WRIT_WORKER_LEASE_TTL: '3s' },
    });
    const load = new Load(platform, seeded(seed + 1), runs);
    const driven = load.drive(inFlight, giveUp.signal);
    driven.catch(() => undefined);
    const outcome = await disturb({ platform, load });
    if (runs === undefined) load.end();
    await mend(platform);
    const healed = performance.now();
    const patience = setTimeout(() => giveUp.abort(new Error('runs did not end')), END_WITHIN_MS);
    const failure = await driven.then(() => undefined).catch((error: unknown) => error);
    clearTimeout(patience);
    const endedAfterMs = performance.now() - healed;
    const broken = await brokenInvariants({ platform, load });
    if (failure !== undefined) broken.push(`runs: ${String(failure)}`);
    if (broken.length > 0) {
      const state = await describeHookStreams(platform.nats, 'p-supervisor').catch(String);
      throw new Error(
        `Seed ${seed} broke:\n${broken.join('\n')}\n${state}\n${lastWords(platform)}`,
      );
    }
    return { outcome, load, endedAfterMs };
  } finally {
    giveUp.abort();
    await platform?.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function mend(platform: DistributedPlatform): Promise<void> {
  platform.heal();
  await Promise.all(platform.replicas.map((replica) => startAgain(replica)));
}

/** What is broken in the end: some of it takes a moment to come right. */
async function brokenInvariants(evidence: Evidence): Promise<string[]> {
  const until = performance.now() + SETTLE_WITHIN_MS;
  for (;;) {
    const broken: string[] = [];
    for (const { holds, violations } of INVARIANTS) {
      const found = await violations(evidence);
      if (found.length > 0) broken.push(`${holds}:`, ...found.slice(0, 20).map((it) => `  ${it}`));
    }
    if (broken.length === 0 || performance.now() > until) return broken;
    await pause(500);
  }
}

function lastWords({ replicas }: DistributedPlatform): string {
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
