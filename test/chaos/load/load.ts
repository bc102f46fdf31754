import { setTimeout as pause } from 'node:timers/promises';
import { type Run, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { isWritError } from '@writ/kernel';
import type { DistributedPlatform } from '@writ/testing/distributed';
import { JOBS, type Job } from './job.ts';
import { PatientClient } from './patient-client.ts';
import { People } from './people.ts';

const WATCH_MS = 10_000;

/** A run whose start was acknowledged. */
export interface StartedRun {
  readonly job: Job;
  readonly runId: string;
}

/** Keeps a bounded number of runs in flight, each followed to its end whatever fails. */
export class Load {
  readonly started: StartedRun[] = [];
  readonly ended = new Map<string, Run>();
  readonly people: People;
  readonly #platform: DistributedPlatform;
  readonly #random: () => number;
  readonly #most: number;
  #taken = 0;
  #isOver = false;

  /** @param most runs in all; unlimited when not given */
  constructor(
    platform: DistributedPlatform,
    random: () => number,
    most: number = Number.POSITIVE_INFINITY,
  ) {
    this.#platform = platform;
    this.#random = random;
    this.#most = most;
    this.people = new People(platform.dataDir);
  }

  /** Starts no further runs; those in flight go on. */
  end(): void {
    this.#isOver = true;
  }

  /** Resolves when there is nothing more to start, and every run is over. */
  async drive(inFlight: number, signal: AbortSignal): Promise<void> {
    const lane = async (number: number): Promise<void> => {
      const client = new PatientClient(this.#platform.clients, number);
      for (let turn = 0; !this.#isOver && this.#taken < this.#most; turn += 1) {
        this.#taken += 1;
        const job = JOBS[Math.floor(this.#random() * JOBS.length)] ?? JOBS[0];
        if (job === undefined) return;
        await this.#run(client, job, `chaos-${number}-${turn}`, signal);
      }
    };
    await Promise.all(Array.from({ length: inFlight }, (_, number) => lane(number)));
  }

  async #run(
    client: PatientClient,
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

  /** Watches a run through whichever supervisor answers, from where the last one left off. */
  async #follow(client: PatientClient, runId: string, signal: AbortSignal): Promise<void> {
    let last = 0n;
    for (;;) {
      const watch = async (to: { readonly signal: AbortSignal }, from: number) => {
        const { runs } = this.#platform.clients[from] ?? this.#platform.client;
        for await (const { event } of runs.watchRun({ runId, afterSequence: last }, to)) {
          if (event === undefined) continue;
          await this.people.heed(client, runId, event, signal);
          last = event.sequence;
        }
      };
      const from = Math.floor(this.#random() * this.#platform.clients.length);
      try {
        await watch({ signal: AbortSignal.any([signal, AbortSignal.timeout(WATCH_MS)]) }, from);
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

/** How many runs ended how. */
export function runFigures({ started, ended, people }: Load): Record<string, number> {
  const reasons = new Map<string, number>();
  for (const { result } of ended.values()) {
    const reason = `ended ${result?.stopReason ?? 'none'}`;
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  return {
    runs: started.length,
    ...Object.fromEntries(reasons),
    'decisions of people': people.decided.size,
  };
}
