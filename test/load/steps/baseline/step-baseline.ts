import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Speed } from '../../../bench/measure.ts';
import { COMPILE_CACHE } from '../../program.ts';

/** The speed of steps. */
export interface StepSpeed extends Speed {
  /** CPU time per step, milliseconds: more stable than latencies on a shared machine. */
  readonly cpuMs: number;
}

/** One measurement. */
export interface BaselineJob {
  readonly work: 'bare' | 'echo' | 'commit';
  readonly inFlight: number;
  readonly forMs: number;
}

/** Options of the baselines. */
export interface BaselineOptions {
  /** Data folder of the measured platform: the baselines use its models and store their files there. */
  readonly folder: string;
  /** Steps per run: the messages of a step grow with the steps before it. */
  readonly limit: number;
}

/** The baselines of a governed step, in their own process. */
export class StepBaseline {
  readonly #child: ChildProcess;
  readonly #exited = new AbortController();

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.once('exit', () => this.#exited.abort(new Error('The baseline process has exited.')));
  }

  /** Starts the process. */
  static async start({ folder, limit }: BaselineOptions): Promise<StepBaseline> {
    const program = fileURLToPath(new URL('program.ts', import.meta.url));
    const env = {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      BASELINE_FOLDER: folder,
      BASELINE_LIMIT: String(limit),
    };
    const baseline = new StepBaseline(fork(program, { env }));
    await baseline.#nextMessage();
    return baseline;
  }

  /** Repeats the work for the given time; rejects when the process exits. */
  async measure(job: BaselineJob): Promise<StepSpeed> {
    const measured = this.#nextMessage();
    this.#child.send(job);
    return (await measured) as StepSpeed;
  }

  /** Stops the process. */
  async close(): Promise<void> {
    if (this.#exited.signal.aborted) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
  }

  async #nextMessage(): Promise<unknown> {
    const [message] = await once(this.#child, 'message', { signal: this.#exited.signal });
    return message;
  }
}
