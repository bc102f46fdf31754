import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { untilAdmitted } from '../load/admitted.ts';
import { StepsHarness } from '../load/steps/steps-harness.ts';
import type { BenchOptions } from './bench.ts';
import { quantileOf } from './measure.ts';

const AGENTS = [10, 50, 100, 200, 400, 600, 800, 1_000] as const;
const STEPS = 6;
const MODEL_MS = 2_000;
/** Number of agents at which the verdict is decided; with this number or fewer, no agent may fail. */
const DECISIVE = 400;
/** Maximum median overhead of a step with {@link DECISIVE} agents, milliseconds. */
const MAX_OVERHEAD_MS = 500;
const SAMPLE_MS = 1_000;
const MB = 1_048_576;

/** The plan of {@link measureActiveAgents}. */
export interface ActiveAgentsPlan {
  /** Number of concurrent agents. */
  readonly agents: number;
  /** Tool calls of each agent. */
  readonly steps: number;
  /** Time after which the model answers, milliseconds. */
  readonly modelMs: number;
}

/** The figures measured with one number of concurrent agents. */
export interface ActiveAgents {
  readonly agents: number;
  /** Measured steps. */
  readonly steps: number;
  /** Duration of a step without the time that the model takes, milliseconds. */
  readonly overheadP50Ms: number;
  readonly overheadP95Ms: number;
  /** Processor time of the platform divided by the elapsed time: 1 is one busy core. */
  readonly cores: number;
  /** Highest resident memory of the platform. */
  readonly residentMb: number;
  /** Errors of the agents that failed. */
  readonly failures: readonly string[];
}

/**
 * Measures the overhead of a step on the embedded platform with up to 1,000 agents at once and a model that answers
 * after 2 s (CO-1). Prints a table and writes `active-agents.json`. Returns whether no agent fails with up to
 * {@link DECISIVE} agents, and the median overhead with {@link DECISIVE} agents is less than {@link MAX_OVERHEAD_MS}.
 */
export async function benchActiveAgents({ outDir = 'dist/bench' }: BenchOptions): Promise<boolean> {
  const load = loadavg();
  const levels: ActiveAgents[] = [];
  console.log('agents    steps   p50 ms   p95 ms    cores       MB   failed');
  for (const agents of AGENTS) {
    const level = await measureActiveAgents({ agents, steps: STEPS, modelMs: MODEL_MS });
    levels.push(level);
    console.log(rowOf(level));
  }
  mkdirSync(outDir, { recursive: true });
  const measuredAt = new Date().toISOString();
  const report = { measuredAt, cores: availableParallelism(), load, levels };
  writeFileSync(join(outDir, 'active-agents.json'), `${JSON.stringify(report, null, 2)}\n`);
  return verdict(levels);
}

/** Starts a platform and all agents at once, and measures every step of each agent after its first model request. */
export async function measureActiveAgents({
  agents,
  steps,
  modelMs,
}: ActiveAgentsPlan): Promise<ActiveAgents> {
  const limit = String(2 * agents);
  const harness = await StepsHarness.start({
    counts: [steps],
    modelDelayMs: modelMs,
    maxInFlight: agents,
    env: { WRIT_WORKER_MAX_AGENTS: limit, WRIT_TENANT_MAX_RUNS: limit },
  });
  try {
    const requestedAt = new Map<string, number>();
    const overheads: number[] = [];
    harness.model.onRequest = (_limit, next, goal) => {
      const now = performance.now();
      // Skips the first model request of a run, which follows the start of the run instead of a step.
      if (next > 1) overheads.push(now - (requestedAt.get(goal) ?? now) - modelMs);
      requestedAt.set(goal, now);
    };
    const { cpuMs } = await harness.counters();
    const startedAt = performance.now();
    const over = new AbortController();
    const resident = highestResident(harness, over.signal);
    const failures: string[] = [];
    const one = async (agent: number): Promise<void> => {
      try {
        const runId = await untilAdmitted(() => harness.startRun(steps, `agent ${agent}`));
        await harness.untilEnded(runId, steps);
      } catch (error) {
        failures.push(String(error));
      }
    };
    await Promise.all(Array.from({ length: agents }, (_, agent) => one(agent)));
    over.abort();
    const residentMb = (await resident) / MB;
    const usedMs = (await harness.counters()).cpuMs - cpuMs;
    overheads.sort((a, b) => a - b);
    return {
      agents,
      steps: overheads.length,
      overheadP50Ms: quantileOf(overheads, 0.5),
      overheadP95Ms: quantileOf(overheads, 0.95),
      cores: usedMs / (performance.now() - startedAt),
      residentMb,
      failures,
    };
  } finally {
    await harness.close();
  }
}

/** Samples the resident memory of the platform until `over` aborts; returns the maximum. */
async function highestResident(harness: StepsHarness, over: AbortSignal): Promise<number> {
  for (let highest = 0; ; ) {
    highest = Math.max(highest, (await harness.counters()).rss);
    if (over.aborted) return highest;
    // The end of the measurement wakes the sampler for its last sample.
    await pause(SAMPLE_MS, undefined, { signal: over }).catch(() => undefined);
  }
}

function rowOf(level: ActiveAgents): string {
  const { agents, steps, overheadP50Ms, overheadP95Ms, cores, residentMb, failures } = level;
  const columns = [
    steps,
    overheadP50Ms.toFixed(0),
    overheadP95Ms.toFixed(0),
    cores.toFixed(2),
    residentMb.toFixed(0),
    failures.length,
  ].map((each) => String(each).padStart(7));
  return [String(agents).padStart(6), ...columns, failures[0] ?? ''].join('  ').trimEnd();
}

function verdict(levels: readonly ActiveAgents[]): boolean {
  const failed = levels
    .filter(({ agents }) => agents <= DECISIVE)
    .reduce((sum, { failures }) => sum + failures.length, 0);
  const { overheadP50Ms = Number.NaN } = levels.find(({ agents }) => agents === DECISIVE) ?? {};
  const isEnough = failed === 0 && overheadP50Ms < MAX_OVERHEAD_MS;
  console.log(
    `${isEnough ? 'PASS' : 'FAIL'}: with ${DECISIVE} agents the median overhead of a step is ${overheadP50Ms.toFixed(0)} ms (less than ${MAX_OVERHEAD_MS}); ${failed} agents failed with up to ${DECISIVE} at once (maximum 0).`,
  );
  return isEnough;
}
