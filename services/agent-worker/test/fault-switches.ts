import type { WritError } from '@writ/kernel';

/**
 * A moment of a call at a fake service: before any effect, or after its answer is recorded. The last part identifies
 * the call: the stop reason of a report, the intent of a renewal, the call id of a decision, or otherwise the line that
 * `lineOf` returns for the call id (`partial` for the review of a partial answer).
 */
export type Moment = `${'before' | 'after'} ${
  | 'generate'
  | 'review'
  | 'call_tool'
  | 'report'
  | 'decision'
  | 'renew'
  | 'spawn'
  | 'end'} ${string}`;

/** Injects faults into a fake service at chosen moments, once each. */
export class FaultSwitches {
  readonly #errors = new Map<string, WritError[]>();
  readonly #holds = new Map<string, { reached: () => void; released: Promise<void> }>();
  readonly #releases: (() => void)[] = [];

  /** Fails the next calls at this moment, one call with each error. */
  failAt(moment: Moment, ...errors: readonly WritError[]): void {
    this.#errors.set(moment, [...(this.#errors.get(moment) ?? []), ...errors]);
  }

  /** Leaves the next call at this moment unanswered; resolves when the call arrives. */
  silenceAt(moment: Moment): Promise<void> {
    return this.holdAt(moment).reached;
  }

  /** Delays the next call at this moment until it is released. */
  holdAt(moment: Moment): { readonly reached: Promise<void>; readonly release: () => void } {
    const reached = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    this.#releases.push(release.resolve);
    this.#holds.set(moment, { reached: reached.resolve, released: release.promise });
    return { reached: reached.promise, release: release.resolve };
  }

  /** Resolves when {@link release} is called. */
  untilReleased(): Promise<void> {
    const release = Promise.withResolvers<void>();
    this.#releases.push(release.resolve);
    return release.promise;
  }

  /** Releases all delayed calls. Called at the end of each test, so that no call stays open. */
  release(): void {
    for (const release of this.#releases) release();
  }

  /** The fakes call this at each moment except after a decision and after a renewal. */
  async pass(moment: Moment): Promise<void> {
    const error = this.#errors.get(moment)?.shift();
    if (error !== undefined) throw error;
    const hold = this.#holds.get(moment);
    this.#holds.delete(moment);
    hold?.reached();
    await hold?.released;
  }
}
