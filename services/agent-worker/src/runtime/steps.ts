import type { Commits } from './journal/commits.ts';
import type { LeaseSession } from './leases/lease-session.ts';
import type { AgentProgress } from './progress.ts';

/**
 * Runs an agent's think-act cycles, and emits exactly one start event and one end event for each cycle. The start of a
 * step and the end of the previous step are committed with the next required commit, or after a short delay; no call
 * waits for this commit (RT-1, CO-1).
 */
export class Steps {
  readonly #session: LeaseSession;
  readonly #commits: Commits;
  readonly #progress: AgentProgress;
  #started: number;
  #ended: number;
  #current = 0;
  #status = 'ok';

  constructor(session: LeaseSession, commits: Commits, progress: AgentProgress) {
    this.#session = session;
    this.#commits = commits;
    this.#progress = progress;
    this.#started = session.row.step_started;
    this.#ended = session.row.step_ended;
  }

  /** The current step; zero between two steps. */
  get current(): number {
    return this.#current;
  }

  /** The last step that has ended; zero when no step has ended. */
  get ended(): number {
    return this.#ended;
  }

  /** Sets the status of the current step: a verdict or stop reason. */
  note(status: string): void {
    this.#status = status;
  }

  /** Runs one step. `waitsFor` is the signal that the step waits for first; empty when it waits for no signal. */
  async run<T>(step: number, waitsFor: string, work: () => Promise<T>): Promise<T> {
    this.#session.check(step <= this.#started);
    // The previous step is still open if it threw an error that the agent caught.
    if (this.#current !== step) this.close();
    this.#current = step;
    this.#status = 'ok';
    this.#progress.enterStep(step);
    if (step > this.#started) {
      this.#started = step;
      this.#commits.stepStarted({ step, waitsFor, lastStep: this.#ended });
      this.#commits.soon();
      this.#progress.publishState(this.#session.status.state);
    }
    const result = await work();
    this.close();
    return result;
  }

  /** Ends the current step, if any, with `status`; default: the status that was last set. */
  close(status = this.#status): void {
    if (this.#current > this.#ended) {
      this.#ended = this.#current;
      this.#commits.stepEnded(this.#current, status);
    }
    this.#current = 0;
  }
}
