import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Speed } from '../../../bench/measure.ts';
import { COMPILE_CACHE } from '../../program.ts';

/** How fast steps were. */
export interface StepSpeed extends Speed {
  /** Time on a processor per step, milliseconds: steadier than the others where the machine is shared. */
  readonly cpuMs: number;
}

/** What is to be measured. */
export interface FloorJob {
  readonly work: 'bare' | 'echoed' | 'commit';
  readonly inFlight: number;
  readonly forMs: number;
}

/** What the floors stand on. */
export interface FloorOptions {
  /** Data of the measured platform: its models are asked, and the floors keep theirs there. */
  readonly folder: string;
  /** Steps of a run: what a step says grows with those before it. */
  readonly limit: number;
}

/** The floors of a governed step, in a process of their own. */
export class StepFloor {
  readonly #child: ChildProcess;
  readonly #gone = new AbortController();

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.once('exit', () => this.#gone.abort(new Error('The process of the floors has ended.')));
  }

  /** Starts it. */
  static async start({ folder, limit }: FloorOptions): Promise<StepFloor> {
    const program = fileURLToPath(new URL('program.ts', import.meta.url));
    const env = {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      FLOOR_FOLDER: folder,
      FLOOR_LIMIT: String(limit),
    };
    const floor = new StepFloor(fork(program, { env }));
    await floor.#told();
    return floor;
  }

  /** Does the work over and over; rejects when the process ends meanwhile. */
  async measure(job: FloorJob): Promise<StepSpeed> {
    const told = this.#told();
    this.#child.send(job);
    return (await told) as StepSpeed;
  }

  /** Ends the process. */
  async close(): Promise<void> {
    if (this.#gone.signal.aborted) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
  }

  async #told(): Promise<unknown> {
    const [told] = await once(this.#child, 'message', { signal: this.#gone.signal });
    return told;
  }
}
