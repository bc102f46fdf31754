import type { WritError } from '@writ/kernel';

/** A moment of a call at a fake service: before it did anything, or after it recorded its answer. */
export type Moment = `${'before' | 'after'} ${
  | 'generate'
  | 'review'
  | 'call_tool'
  | 'report'
  | 'decision'
  | 'renew'
  | 'spawn'
  | 'end'} ${string}`;

/** Makes a fake service fail or fall silent at chosen moments, once each. */
export class FaultSwitches {
  readonly #errors = new Map<string, WritError[]>();
  readonly #holds = new Map<string, { reached: () => void; released: Promise<void> }>();
  readonly #releases: (() => void)[] = [];

  /** The next call that comes to this moment fails; several errors fail as many calls. */
  failAt(moment: Moment, ...errors: readonly WritError[]): void {
    this.#errors.set(moment, [...(this.#errors.get(moment) ?? []), ...errors]);
  }

  /** The next call that comes to this moment is not answered; resolves when it is there. */
  silenceAt(moment: Moment): Promise<void> {
    return this.holdAt(moment).reached;
  }

  /** The next call that comes to this moment is not answered before it is let go. */
  holdAt(moment: Moment): { readonly reached: Promise<void>; readonly release: () => void } {
    const reached = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    this.#releases.push(release.resolve);
    this.#holds.set(moment, { reached: reached.resolve, released: release.promise });
    return { reached: reached.promise, release: release.resolve };
  }

  /** Resolves when everything is closed. */
  untilReleased(): Promise<void> {
    const release = Promise.withResolvers<void>();
    this.#releases.push(release.resolve);
    return release.promise;
  }

  /** Lets go of what is held, so that everything can be closed. */
  release(): void {
    for (const release of this.#releases) release();
  }

  /** Called by a fake at each moment. */
  async pass(moment: Moment): Promise<void> {
    const error = this.#errors.get(moment)?.shift();
    if (error !== undefined) throw error;
    const hold = this.#holds.get(moment);
    this.#holds.delete(moment);
    hold?.reached();
    await hold?.released;
  }
}
