import { describe, expect, it } from 'vitest';
import { type StartOrder, StartQueue } from './start-queue.ts';

const TENANT = 'acme';
const LIMITS = { maxQueuedRuns: 2_048, maxQueuedRunsPerTenant: 512 };
/** Processor time of a StartRun call, ms. */
const CALL_MS = 1;
/**
 * Phases of a run, each with its processor time and the waiting time that follows, ms; the first phase is the start.
 */
type Work = readonly (readonly [cpu: number, wait: number])[];
const COMMIT = [1, 4] as const;
const START = [8, 12] as const;
const QUICK: Work = [START, [6, 15], [6, 15], [8, 10]];
/** With model calls of 2 s. */
const SLOW: Work = [START, [3, 2_000], [3, 2_000], [3, 10]];

interface Task {
  readonly work: Work;
  readonly then: () => void;
  readonly onStarted: (() => void) | undefined;
  phase: number;
  /** Remaining processor time of the phase, ms. */
  cpu: number;
  /** When the phase begins. */
  until: number;
}

/** Outcomes of a start. */
interface Caller {
  /** Called when the run has ended, with the time since the call. */
  readonly ended: (ms: number) => void;
  readonly rejected: () => void;
}

/** A platform with one processor that all tasks share equally: a simulation in steps of 1 ms. */
class SimulatedPlatform {
  readonly queue = new StartQueue<StartOrder>(LIMITS);
  readonly #random: () => number;
  readonly #runs = new Map<string, { readonly work: Work; readonly ended: () => void }>();
  #tasks: Task[] = [];
  now = 0;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
  }

  /** Calls StartRun. */
  startRun(work: Work, { ended, rejected }: Caller): void {
    const calledAt = this.now;
    this.#add([[CALL_MS, 0]], () => {
      let release: () => void;
      try {
        release = this.queue.reserve(TENANT, this.now);
      } catch {
        rejected();
        return;
      }
      const id = `run-${this.#runs.size}`;
      this.#runs.set(id, { work, ended: () => ended(this.now - calledAt) });
      this.#add([COMMIT], () => {
        this.queue.add({ order_id: id, tenant: TENANT, run_id: id });
        release();
      });
    });
  }

  /** Advances by 1 ms. */
  tick(): void {
    this.now += 1;
    this.#admit();
    const running = this.#tasks.filter((task) => task.until <= this.now);
    for (const task of running) {
      task.cpu -= 1 / running.length;
      if (task.cpu <= 0) this.#advance(task);
    }
  }

  #admit(): void {
    for (;;) {
      const order = this.queue.next(this.now);
      if (order === undefined) return;
      const startedAt = this.now;
      const { work = [], ended } = this.#runs.get(order.run_id) ?? {};
      const started = (): void => {
        this.queue.setActive(TENANT, order.run_id, true, this.now);
        this.queue.observe(this.now - startedAt, this.now);
        this.queue.started(order);
      };
      const over = (): void => {
        this.queue.setActive(TENANT, order.run_id, false, this.now);
        ended?.();
      };
      this.#add(work, over, started);
    }
  }

  #add(work: Work, then: () => void, onStarted?: () => void): void {
    const task = { work, then, onStarted, phase: -1, cpu: 0, until: this.now };
    this.#tasks.push(task);
    this.#advance(task);
  }

  /** Begins the next phase of a task after the waiting time of the current phase. */
  #advance(task: Task): void {
    const [, wait = 0] = task.work[task.phase] ?? [];
    task.until = this.now + wait * (0.8 + 0.4 * this.#random());
    task.phase += 1;
    if (task.phase === 1) task.onStarted?.();
    const next = task.work[task.phase];
    if (next !== undefined) {
      task.cpu = next[0] * (0.7 + 0.6 * this.#random());
      return;
    }
    this.#tasks = this.#tasks.filter((other) => other !== task);
    task.then();
  }
}

/** A linear congruential generator: the same seed gives the same load. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

/** Keeps `count` runs in flight for `forMs`. */
function closedLoop(platform: SimulatedPlatform, count: number, forMs: number) {
  const durations: number[] = [];
  let rejected = 0;
  const until = platform.now + forMs;
  const one = (): void => {
    if (platform.now >= until) return;
    platform.startRun(QUICK, {
      ended(ms) {
        durations.push(ms);
        one();
      },
      rejected() {
        rejected += 1;
      },
    });
  };
  for (let caller = 0; caller < count; caller += 1) one();
  while (platform.now < until) platform.tick();
  return { durations, rejected, perSecond: durations.length / (forMs / 1_000) };
}

/**
 * Starts `perSecond` runs regardless of whether earlier runs have ended, and waits until all runs have ended or were
 * rejected.
 */
function openLoop(platform: SimulatedPlatform, perSecond: number, forMs: number) {
  const durations: number[] = [];
  let rejected = 0;
  let started = 0;
  const from = platform.now;
  const caller = {
    ended: (ms: number) => durations.push(ms),
    rejected() {
      rejected += 1;
    },
  };
  while (platform.now < from + forMs || durations.length + rejected < started) {
    const due = Math.min(forMs, platform.now - from) * (perSecond / 1_000);
    for (; started < due; started += 1) platform.startRun(QUICK, caller);
    platform.tick();
  }
  return { durations, rejected };
}

function quantile(values: readonly number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? Number.NaN;
}

const SEEDS = [1, 2, 3];

describe('StartQueue on a simulated platform', () => {
  it.each(SEEDS)('limits run durations at twice the capacity, seed %i (BD-5)', (seed) => {
    const platform = new SimulatedPlatform(seed);
    const unloaded = quantile(closedLoop(platform, 1, 10_000).durations, 0.99);
    const { perSecond } = closedLoop(platform, 8, 5_000);
    const { durations, rejected } = openLoop(platform, perSecond * 2, 30_000);
    expect(quantile(durations, 0.99)).toBeLessThanOrEqual(5 * unloaded);
    // The capacity is used, and the rest is rejected.
    expect(durations.length).toBeGreaterThan(0.9 * perSecond * 30);
    expect(rejected).toBeGreaterThan(0.8 * perSecond * 30);
  });

  it.each([8, 16, 32, 64])(
    'rejects no start of a caller that keeps %i runs in flight (BD-5)',
    (count) => {
      for (const seed of SEEDS) {
        const platform = new SimulatedPlatform(seed);
        const { durations } = closedLoop(platform, 1, 2_000);
        const { rejected, perSecond } = closedLoop(platform, count, 12_000);
        expect(rejected).toBe(0);
        expect(perSecond).toBeGreaterThan(durations.length / 2);
      }
    },
  );

  it('admits 400 runs with slow models at once, since they use little processor time (BD-5)', () => {
    const platform = new SimulatedPlatform(1);
    let left = 400;
    for (let number = 0; number < 400; number += 1) {
      platform.startRun(SLOW, {
        ended() {
          left -= 1;
        },
        rejected: () => expect.fail('A start was rejected.'),
      });
    }
    let most = 0;
    while (left > 0) {
      platform.tick();
      most = Math.max(most, platform.queue.active);
    }
    expect(most).toBeGreaterThan(200);
  });
});
