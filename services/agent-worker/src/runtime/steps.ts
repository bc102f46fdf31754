import type { Commits } from './commits.ts';
import type { AgentProgress } from './progress.ts';
import type { Session } from './session.ts';

/**
 * Counts an agent's think-act cycles and tells of each once. A step's end is committed together with
 * the start of the next one, so that a step costs one commit (RT-1) and starts before its first call.
 */
export class Steps {
  readonly #session: Session;
  readonly #commits: Commits;
  readonly #progress: AgentProgress;
  #started: number;
  #ended: number;
  #current = 0;
  #status = 'ok';

  constructor(session: Session, commits: Commits, progress: AgentProgress) {
    this.#session = session;
    this.#commits = commits;
    this.#progress = progress;
    this.#started = session.row.step_started;
    this.#ended = session.row.step_ended;
  }

  /** The step under way; zero between two. */
  get current(): number {
    return this.#current;
  }

  /** Says how the step under way goes: a verdict or stop reason. */
  note(status: string): void {
    this.#status = status;
  }

  /** Runs one step; `waitsFor` names the signal that it begins with, if it does with one. */
  async run<T>(step: number, waitsFor: string, work: () => Promise<T>): Promise<T> {
    this.#session.check();
    this.#current = step;
    this.#status = 'ok';
    this.#progress.enterStep(step);
    if (step > this.#started) {
      this.#started = step;
      this.#commits.stepStarted({ step, waitsFor });
      await this.#commits.commit();
      this.#progress.publishState(this.#session.status.state);
    }
    const result = await work();
    this.close();
    return result;
  }

  /** Ends the step under way, if there is one; with a status, that of the ending. */
  close(status = this.#status): void {
    if (this.#current > this.#ended) {
      this.#ended = this.#current;
      this.#commits.stepEnded(this.#current, status);
    }
    this.#current = 0;
  }
}
