import { setTimeout as pause } from 'node:timers/promises';
import { createWritClient, type WritClient } from '@writ/client';
import { type Run, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { isWritError, newId } from '@writ/kernel';
import type { DistributedPlatform } from '@writ/testing/distributed';
import { FLOODED, JOBS, type Job, PATIENT } from './job.ts';
import { RetryingClient } from './retrying-client.ts';
import { Reviewers } from './reviewers.ts';

const WATCH_TIMEOUT_MS = 10_000;
/** Timeout of a start that is not retried. */
const START_TIMEOUT_MS = 10_000;

/** A run whose start was acknowledged. */
export interface StartedRun {
  readonly job: Job;
  readonly runId: string;
}

/**
 * Keeps a fixed number of runs in flight, also starts floods of runs and runs that wait for a person, and follows each
 * run to its end through any fault.
 */
export class Load {
  readonly started: StartedRun[] = [];
  readonly ended = new Map<string, Run>();
  readonly reviewers: Reviewers;
  /** Runs that wait for a person until {@link Load.release}. */
  readonly patient: string[] = [];
  /** Outcomes of the starts of floods. */
  readonly flooded = new Map<string, number>();
  readonly #released = Promise.withResolvers<void>();
  /** Watches of runs that {@link Load.drive} did not start. */
  readonly #others: Promise<void>[] = [];
  readonly #platform: DistributedPlatform;
  readonly #random: () => number;
  readonly #maxRuns: number;
  #startedCount = 0;
  #isStopped = false;
  #signal: AbortSignal = new AbortController().signal;

  /** @param maxRuns maximum number of runs that {@link Load.drive} starts; default unlimited */
  constructor(
    platform: DistributedPlatform,
    random: () => number,
    maxRuns: number = Number.POSITIVE_INFINITY,
  ) {
    this.#platform = platform;
    this.#random = random;
    this.#maxRuns = maxRuns;
    this.reviewers = new Reviewers(platform.dataDir);
  }

  /** Stops starting runs; runs in flight continue. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Keeps `inFlight` runs in flight until {@link Load.stop} is called or the maximum number of runs is reached;
   * resolves when all runs have ended.
   */
  async drive(inFlight: number, signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    const driveNext = async (number: number): Promise<void> => {
      const client = new RetryingClient(this.#platform.clients, number);
      for (let turn = 0; !this.#isStopped && this.#startedCount < this.#maxRuns; turn += 1) {
        this.#startedCount += 1;
        const job = JOBS[Math.floor(this.#random() * JOBS.length)] ?? JOBS[0];
        if (job === undefined) return;
        await this.#run(client, job, `chaos-${number}-${turn}`, signal);
      }
    };
    await Promise.all(Array.from({ length: inFlight }, (_, number) => driveNext(number)));
    while (this.#others.length > 0) await Promise.all(this.#others.splice(0));
  }

  /** Starts runs that wait for a person until {@link Load.release}; resolves when they wait. */
  async startPatient(count: number): Promise<void> {
    const client = new RetryingClient(this.#platform.clients, 0);
    for (let number = 0; number < count; number += 1) {
      const request = { ...PATIENT, requestId: `patient-${number}`, goal: 'Do it.' };
      const { run } = await client.call(({ runs }, to) => runs.startRun(request, to), this.#signal);
      const runId = run?.runId ?? '';
      this.started.push({ job: PATIENT, runId });
      this.patient.push(runId);
      await this.#untilSuspended(client, runId);
      this.#addWatch(this.#released.promise.then(() => this.#follow(client, runId, this.#signal)));
    }
  }

  async #untilSuspended(client: RetryingClient, runId: string): Promise<void> {
    for (;;) {
      const { run } = await client.call(({ runs }, to) => runs.getRun({ runId }, to), this.#signal);
      if (run?.state === RunState.SUSPENDED) return;
      if (run?.result !== undefined) throw new Error(`${runId} does not wait for a person.`);
      await pause(100, undefined, { signal: this.#signal });
    }
  }

  /** Lets the reviewers decide the approvals of patient runs. */
  release(): void {
    this.#released.resolve();
  }

  /** Starts many runs at once, each with one attempt, and watches the accepted runs to their end. */
  async flood(count: number): Promise<void> {
    const client = new RetryingClient(this.#platform.clients, 0);
    const { edgeUrls, apiKey } = this.#platform;
    const floodClients = edgeUrls.map((baseUrl) =>
      createWritClient({ baseUrl, apiKey, retryStarts: false }),
    );
    const starts = Array.from({ length: count }, async (_, number) => {
      const { runs } = floodClients[number % floodClients.length] as WritClient;
      const request = { ...FLOODED, requestId: newId('req'), goal: 'Do it at once.' };
      try {
        const { run } = await runs.startRun(request, {
          signal: AbortSignal.timeout(START_TIMEOUT_MS),
        });
        const runId = run?.runId ?? '';
        this.#count('accepted');
        this.started.push({ job: FLOODED, runId });
        this.#addWatch(this.#follow(client, runId, this.#signal));
      } catch (error) {
        if (!isWritError(error)) throw error;
        this.#count(error.reason);
      }
    });
    await Promise.all(starts);
  }

  #count(outcome: string): void {
    this.flooded.set(outcome, (this.flooded.get(outcome) ?? 0) + 1);
  }

  #addWatch(watch: Promise<void>): void {
    // drive() reports the failure.
    watch.catch(() => undefined);
    this.#others.push(watch);
  }

  async #run(
    client: RetryingClient,
    job: Job,
    requestId: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { agent, model } = job;
    const request = { requestId, agent, goal: `Do it (${requestId}).`, ...(model && { model }) };
    const { run } = await client.call(({ runs }, to) => runs.startRun(request, to), signal);
    const runId = run?.runId ?? '';
    this.started.push({ job, runId });
    await this.#follow(client, runId, signal);
  }

  /** Watches a run through any available supervisor and resumes the watch after the last sequence number. */
  async #follow(client: RetryingClient, runId: string, signal: AbortSignal): Promise<void> {
    let last = 0n;
    for (;;) {
      const watch = async (to: { readonly signal: AbortSignal }, from: number) => {
        const { runs } = this.#platform.clients[from] ?? this.#platform.client;
        for await (const { event } of runs.watchRun({ runId, afterSequence: last }, to)) {
          if (event === undefined) continue;
          await this.reviewers.respond(client, runId, event, signal);
          last = event.sequence;
        }
      };
      const from = Math.floor(this.#random() * this.#platform.clients.length);
      try {
        await watch(
          { signal: AbortSignal.any([signal, AbortSignal.timeout(WATCH_TIMEOUT_MS)]) },
          from,
        );
      } catch (error) {
        signal.throwIfAborted();
        if (!isWritError(error)) throw error;
      }
      const { run } = await client.call(({ runs }, to) => runs.getRun({ runId }, to), signal);
      if (run?.result !== undefined && run.state > RunState.ENDING) {
        this.ended.set(runId, run);
        return;
      }
      await pause(100, undefined, { signal });
    }
  }
}

/**
 * Returns the number of started runs, of ended runs by stop reason, of human decisions, and of the starts of floods by
 * outcome.
 */
export function runFigures({ started, ended, reviewers, flooded }: Load) {
  const reasons = new Map<string, number>();
  for (const { result } of ended.values()) {
    const reason = `ended ${result?.stopReason ?? 'none'}`;
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  return {
    runs: started.length,
    ...Object.fromEntries(reasons),
    'human decisions': reviewers.decided.size,
    ...Object.fromEntries([...flooded].map(([what, count]) => [`flooded start ${what}`, count])),
  };
}
